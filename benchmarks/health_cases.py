"""The runs of `benchmarks.health`: broken on purpose, and healthy.

The thresholds of the rules were chosen with these runs in view. Those that were not
are in `health_held_out`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """A run.

    Attributes:
      rule: The rule that must find something; empty for a healthy run.
      text: What was broken, for the table.
      algorithm: The name of the algorithm's class.
      environment: The environment's name, or a function that makes one.
      steps: The environment steps; None for the settings' length.
      settings: Settings, or arguments of the class.
      seed: The seed.
      rows: The rows of the log, about; 0 for the settings' interval.
      evaluations: The evaluations, about; see `rows`.
    """

    rule: str
    text: str
    algorithm: str
    environment: Any
    steps: int | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    rows: int = 0
    evaluations: int = 10


def scaled(factor: Any, offset: float = 0.0) -> Callable[[Any], Any]:
    """Returns a wrapper that scales observations, and adds an offset."""

    def wrap(environment: gymnasium.Env) -> gymnasium.Env:
        inner = environment.observation_space
        space = gymnasium.spaces.Box(-np.inf, np.inf, inner.shape, np.float32)
        return gymnasium.wrappers.TransformObservation(
            environment, lambda x: (factor * x + offset).astype(np.float32), space
        )

    return wrap


class Noise(gymnasium.ObservationWrapper):
    """Observations that say nothing about the state."""

    def observation(self, observation: Any) -> Any:
        """Returns the changed observation."""
        return self.np_random.normal(size=observation.shape).astype(np.float32)


class ClockTerminates(gymnasium.Wrapper):
    """Reports the end by a time limit as a termination."""

    def step(self, action: Any) -> Any:
        """Takes a step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated or truncated, False, info


def made(name: str, *wrappers: Callable[[Any], Any], **kwargs: Any) -> Any:
    """Returns a function that makes an environment with wrappers."""

    def make() -> gymnasium.Env:
        environment = gymnasium.make(name, **kwargs)
        for wrap in wrappers:
            environment = wrap(environment)
        return environment

    return make


def _dead_network(observation_spec: Any, action_spec: Any) -> Any:
    """Returns a Q-network whose hidden units are all 0."""
    import keras

    from tfrl import networks

    network = networks.QNetwork(
        observation_spec, action_spec, fc_layer_params=(64, 64), seed=0
    )
    network.create_variables()
    for layer in network.layers[0].layers:
        if isinstance(layer, keras.layers.Dense):
            layer.bias.assign(-100.0 + 0.0 * layer.bias)
    return network


def _stopped_network(observation_spec: Any, action_spec: Any) -> Any:
    """Returns a Q-network with a saturated layer, which no gradient passes."""
    import keras

    from tfrl import networks

    return networks.Sequential(
        [
            keras.layers.Dense(64, activation="tanh"),
            keras.layers.Rescaling(1e4, 1e4),
            keras.layers.Dense(64, activation="sigmoid", use_bias=False),
            keras.layers.Rescaling(0.0),
            keras.layers.Dense(int(action_spec.maximum) + 1, use_bias=False),
        ],
        input_spec=observation_spec,
        seed=0,
    )


CART, PENDULUM = "CartPole-v1", "Pendulum-v1"
_LIMITED = made(CART, ClockTerminates, max_episode_steps=50)

HEALTHY = {
    "dqn": Case("", "DQN on CartPole", "DQN", CART, 30_000),
    "ddqn": Case("", "DDQN on CartPole", "DDQN", CART, 30_000),
    "ppo": Case("", "PPO on CartPole", "PPO", CART),
    "a2c": Case("", "A2C on CartPole", "A2C", CART),
    "pqn": Case("", "PQN on CartPole", "PQN", CART),
    "qrdqn": Case("", "QR-DQN on CartPole", "QRDQN", CART, 30_000),
    "iqn": Case("", "IQN on CartPole", "IQN", CART, 30_000),
    "reinforce": Case("", "REINFORCE on CartPole", "REINFORCE", CART),
    "sac": Case("", "SAC on Pendulum", "SAC", PENDULUM, 10_000),
    "td3": Case("", "TD3 on Pendulum", "TD3", PENDULUM, 10_000),
    "ddpg": Case("", "DDPG on Pendulum", "DDPG", PENDULUM, 10_000),
    "ppo_pendulum": Case("", "PPO on Pendulum", "PPO", PENDULUM, 100_000),
}

BROKEN = {
    "values_dqn": Case(
        "values",
        "DQN that copies its targets, gamma 1, learning rate 0.03",
        "DQN",
        CART,
        10_000,
        {"learning_rate": 3e-2, "final_learning_rate": None, "gamma": 1.0}
        | {"target_update_tau": 1.0},
    ),
    "values_ddpg": Case(
        "values",
        "DDPG that copies its targets, gamma 1, learning rate 0.03",
        "DDPG",
        PENDULUM,
        6_000,
        {"critic_learning_rate": 3e-2, "gamma": 1.0, "target_update_tau": 1.0},
    ),
    "entropy_ppo": Case(
        "entropy",
        "PPO with a learning rate of 0.3, not clipped",
        "PPO",
        CART,
        50_000,
        {"learning_rate": 0.3, "clip_range": 1e6, "max_gradient_norm": 0.0},
    ),
    "entropy_sac": Case(
        "entropy",
        "SAC with a temperature fixed at 1e-6",
        "SAC",
        PENDULUM,
        8_000,
        {"initial_alpha": 1e-6, "alpha_learning_rate": 1e-12},
    ),
    "exploration_never": Case(
        "exploration",
        "DQN with epsilon 0",
        "DQN",
        CART,
        10_000,
        {"initial_epsilon": 0.0, "final_epsilon": 0.0, "initial_collect_steps": 64},
    ),
    "exploration_always": Case(
        "exploration",
        "DQN whose epsilon stays at 1",
        "DQN",
        CART,
        10_000,
        {"epsilon_decay_iterations": 10**9},
    ),
    "gradients_clipped": Case(
        "gradients",
        "PPO with gradients clipped to 1e-5",
        "PPO",
        CART,
        50_000,
        {"max_gradient_norm": 1e-5},
    ),
    "gradients_vanish": Case(
        "gradients",
        "DQN with a network that passes no gradient",
        "DQN",
        CART,
        10_000,
        {"network": _stopped_network},
    ),
    "units_bias": Case(
        "units",
        "DQN with relu layers of bias -100",
        "DQN",
        CART,
        10_000,
        {"network": _dead_network},
    ),
    "units_rate": Case(
        "units",
        "DQN with a learning rate of 1",
        "DQN",
        CART,
        10_000,
        {"learning_rate": 1.0, "final_learning_rate": None},
    ),
    "rewards_small": Case(
        "rewards",
        "DQN with rewards times 1e-6",
        "DQN",
        CART,
        10_000,
        {"agent_arguments": {"reward_scale_factor": 1e-6}},
    ),
    "rewards_atoms": Case(
        "rewards",
        "C51 with atoms in [0, 1]",
        "C51",
        CART,
        15_000,
        {"vmin": 0.0, "vmax": 1.0} | {"log_interval": 100, "eval_interval": 300},
    ),
    "targets_dqn": Case(
        "targets",
        "DQN that never updates its targets",
        "DQN",
        CART,
        10_000,
        {"target_update_period": 10**9},
    ),
    "targets_td3": Case(
        "targets",
        "TD3 with a tau of 1e-9",
        "TD3",
        PENDULUM,
        5_000,
        {"target_update_tau": 1e-9},
    ),
    "steps_large": Case(
        "policy steps",
        "PPO with a learning rate of 0.05",
        "PPO",
        CART,
        50_000,
        {"learning_rate": 0.05, "final_learning_rate": None}
        | {"final_clip_range": None},
    ),
    "steps_small": Case(
        "policy steps",
        "PPO with a learning rate of 1e-8",
        "PPO",
        CART,
        50_000,
        {"learning_rate": 1e-8},
    ),
    "critic_ppo": Case(
        "critic",
        "PPO whose critic is not trained",
        "PPO",
        PENDULUM,
        50_000,
        {"value_loss_weight": 0.0},
    ),
    "critic_a2c": Case(
        "critic",
        "A2C whose critic is not trained",
        "A2C",
        CART,
        100_000,
        {"value_loss_weight": 0.0},
    ),
    "advantages_positive": Case(
        "advantages",
        "A2C on rewards of 1, without a critic",
        "A2C",
        CART,
        100_000,
        {"value_loss_weight": 0.0, "lambda_value": 1.0},
    ),
    "advantages_negative": Case(
        "advantages",
        "PPO on rewards of -1, without a critic",
        "PPO",
        "MountainCar-v0",
        50_000,
        {"value_loss_weight": 0.0, "normalize_advantages": False},
    ),
    "replay_small": Case(
        "replay",
        "DQN with a buffer of 128 frames",
        "DQN",
        CART,
        10_000,
        {"replay_capacity": 128},
    ),
    "replay_often": Case(
        "replay",
        "DQN that draws each frame 32,768 times",
        "DQN",
        CART,
        2_000,
        {"batch_size": 2048, "train_steps_per_iteration": 64, "log_interval": 20}
        | {"eval_interval": 100},
    ),
    "observations_large": Case(
        "observations",
        "DQN on observations times 10,000",
        "DQN",
        made(CART, scaled(1e4)),
        10_000,
    ),
    "observations_offset": Case(
        "observations",
        "PPO on observations plus 1,000",
        "PPO",
        made(CART, scaled(1.0, 1e3)),
        50_000,
        {"preset": "ppo"},
    ),
    "actions_td3": Case(
        "actions",
        "TD3 with an actor's learning rate of 0.3",
        "TD3",
        PENDULUM,
        5_000,
        {"actor_learning_rate": 0.3},
    ),
    "actions_ddpg": Case(
        "actions",
        "DDPG with an actor's learning rate of 1",
        "DDPG",
        PENDULUM,
        5_000,
        {"actor_learning_rate": 1.0},
    ),
    "clock_sac": Case(
        "clock",
        "SAC on a Pendulum whose time limit terminates",
        "SAC",
        made(PENDULUM, ClockTerminates),
        6_000,
        {"preset": "sac"},
    ),
    "clock_dqn": Case(
        "clock",
        "DQN on a CartPole that terminates after 50 steps",
        "DQN",
        _LIMITED,
        10_000,
    ),
    "evaluation_dqn": Case(
        "evaluation",
        "DQN evaluated with observations times -1",
        "DQN",
        CART,
        20_000,
        {"evaluation_environment": made(CART, scaled(-1.0))},
    ),
    "evaluation_ppo": Case(
        "evaluation",
        "PPO evaluated with observations times -1",
        "PPO",
        CART,
        50_000,
        {"evaluation_environment": made(CART, scaled(-1.0))},
    ),
    # These are the third seeds beside two healthy ones.
    "seeds_dqn": Case(
        "seeds",
        "DQN, of whose three seeds one sees noise",
        "DQN",
        made(CART, Noise),
        None,
    ),
    "seeds_ppo": Case(
        "seeds",
        "PPO, of whose three seeds one sees noise",
        "PPO",
        made(CART, Noise),
        None,
        {"preset": "ppo"},
    ),
}
