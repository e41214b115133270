"""The problems of `benchmarks.time_to_score`, and each library's settings for them.

tfrl has the settings that it uses for the environment by itself. Stable-Baselines3 and
SBX have rl-zoo3's (its hyperparams/*.yml at commit 22e3ff2), and their defaults where
rl-zoo3 has none. TF-Agents has those of its examples for DQN, and rl-zoo3's where its
examples are of other problems. SBX lacks A2C and observations of several parts,
TF-Agents lacks A2C.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfrl.algorithms import registry


@dataclasses.dataclass(frozen=True)
class Problem:
    """A return to reach with an algorithm in an environment.

    Attributes:
      name: Its name on the command line.
      title: Its name for readers.
      algorithm: The name of the algorithm's class in tfrl.
      environment: The name of the environment.
      score: The mean return of 20 greedy episodes to reach.
      every: The environment steps between evaluations.
      steps: The environment steps after which a run ends that has not reached it.
      settings: The settings of each system that has the algorithm.
      num_seeds: The number of runs; their seeds begin at 0.
    """

    name: str
    title: str
    algorithm: str
    environment: str
    score: float
    every: int
    steps: int
    settings: Mapping[str, Mapping[str, Any]]
    num_seeds: int = 3

    def task(self, system: str) -> dict[str, Any]:
        """Returns the task of a system's worker, valid in JSON."""
        shared = ("algorithm", "environment", "score", "every", "steps")
        return {
            **{name: getattr(self, name) for name in shared},
            **self.settings[system],
        }


def _own(name: str, environment: str) -> dict[str, Any]:
    """Returns the settings that tfrl uses for an environment, without its defaults."""
    kind = registry.find(name)
    preset = registry.find_preset(kind, environment)
    return {"settings": registry.settings_of(kind, preset) if preset else {}}


def _peers(
    num_envs: int = 1,
    policy: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Returns a peer's settings; a number in a list falls linearly to 0.

    Args:
      num_envs: The environments stepped together.
      policy: The networks.
      more: Other fields of a task of `benchmarks.workers.score_with_torch`.
      **arguments: The algorithm's arguments, by Stable-Baselines3's names.
    """
    return {
        "num_envs": num_envs,
        "policy": policy or {},
        "arguments": arguments,
        **(more or {}),
    }


def _both(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings for Stable-Baselines3 and for SBX."""
    return {
        "torch": {"package": "stable_baselines3", **settings},
        "sbx": {"package": "sbx", **settings},
    }


_CARTPOLE, _PENDULUM = "CartPole-v1", "Pendulum-v1"
_SEEN_OR_TOLD = "benchmarks.workers.seen_or_told:SeenOrTold-v0"
_PPO_CARTPOLE = _peers(
    8,
    n_steps=32,
    batch_size=256,
    gae_lambda=0.8,
    gamma=0.98,
    n_epochs=20,
    ent_coef=0.0,
    learning_rate=[1e-3],
    clip_range=[0.2],
)
_DQN_CARTPOLE = _peers(
    policy={"net_arch": [256, 256]},
    learning_rate=2.3e-3,
    batch_size=64,
    buffer_size=100_000,
    learning_starts=1000,
    gamma=0.99,
    target_update_interval=10,
    train_freq=256,
    gradient_steps=128,
    exploration_fraction=0.16,
    exploration_final_eps=0.04,
)
# Of tf_agents/agents/dqn/examples/v2/train_eval.py, for CartPole-v0.
_TF_AGENTS_DQN = _peers(
    policy={"net_arch": [100]},
    learning_rate=1e-3,
    batch_size=64,
    buffer_size=100_000,
    learning_starts=1000,
    gamma=0.99,
    tau=0.05,
    target_update_interval=5,
    exploration_final_eps=0.1,
)
# All but the learning rate are Stable-Baselines3's defaults.
_SAC_PENDULUM = _peers(
    policy={"net_arch": [256, 256]},
    learning_rate=1e-3,
    batch_size=256,
    buffer_size=1_000_000,
    learning_starts=100,
    gamma=0.99,
    tau=0.005,
)
_TD3_PENDULUM = _peers(
    policy={"net_arch": [400, 300]},
    more={"action_noise": 0.1},
    batch_size=256,
    gamma=0.98,
    tau=0.005,
    buffer_size=200_000,
    learning_starts=10_000,
    gradient_steps=1,
    train_freq=1,
    learning_rate=1e-3,
)
_PPO_HALF_CHEETAH = _peers(
    policy={
        "log_std_init": -2,
        "ortho_init": False,
        "activation": "relu",
        "net_arch": {"pi": [256, 256], "vf": [256, 256]},
    },
    more={"normalized": [True, True]},
    batch_size=64,
    n_steps=512,
    gamma=0.98,
    learning_rate=2.0633e-05,
    ent_coef=0.000401762,
    clip_range=0.1,
    n_epochs=20,
    gae_lambda=0.92,
    max_grad_norm=0.8,
    vf_coef=0.58096,
)
PROBLEMS = (
    Problem(
        name="ppo_cartpole",
        title="PPO, CartPole-v1",
        algorithm="PPO",
        environment=_CARTPOLE,
        score=475.0,
        every=1_024,
        steps=100_000,
        settings={
            "tfrl": _own("ppo", _CARTPOLE),
            **_both(_PPO_CARTPOLE),
            "tf_agents": _PPO_CARTPOLE,
        },
    ),
    Problem(
        name="dqn_cartpole",
        title="DQN, CartPole-v1",
        algorithm="DQN",
        environment=_CARTPOLE,
        score=475.0,
        every=1_000,
        steps=50_000,
        settings={
            "tfrl": _own("dqn", _CARTPOLE),
            **_both(_DQN_CARTPOLE),
            "tf_agents": _TF_AGENTS_DQN,
        },
    ),
    Problem(
        name="a2c_cartpole",
        title="A2C, CartPole-v1",
        algorithm="A2C",
        environment=_CARTPOLE,
        score=475.0,
        every=5_000,
        steps=500_000,
        settings={
            "tfrl": _own("a2c", _CARTPOLE),
            "torch": {"package": "stable_baselines3", **_peers(8, ent_coef=0.0)},
        },
    ),
    Problem(
        name="sac_pendulum",
        title="SAC, Pendulum-v1",
        algorithm="SAC",
        environment=_PENDULUM,
        score=-160.0,
        every=500,
        steps=20_000,
        settings={
            "tfrl": _own("sac", _PENDULUM),
            **_both(_SAC_PENDULUM),
            "tf_agents": _SAC_PENDULUM,
        },
    ),
    Problem(
        name="td3_pendulum",
        title="TD3, Pendulum-v1",
        algorithm="TD3",
        environment=_PENDULUM,
        score=-160.0,
        every=500,
        steps=20_000,
        settings={
            "tfrl": _own("td3", _PENDULUM),
            **_both(_TD3_PENDULUM),
            "tf_agents": _TD3_PENDULUM,
        },
    ),
    Problem(
        name="ppo_image_and_number",
        title="PPO, an image and a number",
        algorithm="PPO",
        environment=_SEEN_OR_TOLD,
        score=9.5,
        every=1_024,
        steps=50_000,
        settings={
            "tfrl": _own("ppo", _SEEN_OR_TOLD),
            "torch": {
                "package": "stable_baselines3",
                **_peers(more={"policy_class": "MultiInputPolicy"}),
            },
        },
    ),
    Problem(
        name="ppo_half_cheetah",
        title="PPO, HalfCheetah-v5",
        algorithm="PPO",
        environment="HalfCheetah-v5",
        score=1_443.0,
        every=20_480,
        steps=1_000_000,
        settings={
            "tfrl": _own("ppo", "HalfCheetah-v5"),
            "torch": {"package": "stable_baselines3", **_PPO_HALF_CHEETAH},
        },
        num_seeds=1,
    ),
    Problem(
        name="sac_hopper",
        title="SAC, Hopper-v5",
        algorithm="SAC",
        environment="Hopper-v5",
        score=1_000.0,
        every=5_000,
        steps=300_000,
        settings={
            "tfrl": _own("sac", "Hopper-v5"),
            **_both(_peers(learning_starts=10_000)),
        },
        num_seeds=1,
    ),
)
