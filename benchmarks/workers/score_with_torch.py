"""Trains with Stable-Baselines3, and scores the final weights.

    PYTHON benchmarks/workers/score_with_torch.py TASK SEED

`benchmarks.score_peers` makes the task, in JSON. PYTHON is a Python with
stable-baselines3 and the environment's packages. The last line of the output is JSON.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
import time
import types
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common import env_util, evaluation, noise, vec_env
from torch import nn

_EPISODES = 50
_AGENTS = "pettingzoo/"
_ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


def make(
    task: dict[str, Any], seed: int, package: types.ModuleType = stable_baselines3
) -> Any:
    """Makes the algorithm of a task, with its environment.

    Args:
      task: The task; its "policy_class" is "MlpPolicy" by default.
      seed: The seed.
      package: The package of the algorithms, which SBX is, too.
    """
    environment = make_environment(task["environment"], task["num_envs"], seed)
    arguments = {name: _argument(value) for name, value in task["arguments"].items()}
    if any(task.get("normalized", ())):
        observations, rewards = task["normalized"]
        environment = vec_env.VecNormalize(
            environment,
            norm_obs=observations,
            norm_reward=rewards,
            gamma=arguments["gamma"],
        )
    if "action_noise" in task:
        size = np.ones(environment.action_space.shape)
        arguments["action_noise"] = noise.NormalActionNoise(
            0 * size, task["action_noise"] * size
        )
    policy = dict(task["policy"])
    if "activation" in policy:
        policy["activation_fn"] = _ACTIVATIONS[policy.pop("activation")]
    algorithm = getattr(package, task["algorithm"])
    return algorithm(
        task.get("policy_class", "MlpPolicy"),
        environment,
        policy_kwargs=policy,
        seed=seed,
        device="cpu",
        **arguments,
    )


def make_environment(name: str, num_envs: int, seed: int) -> Any:
    """Makes a batch of an environment, or of the agents of some copies of one."""
    if not name.startswith(_AGENTS):
        return env_util.make_vec_env(name, num_envs, seed)
    import supersuit  # SBX's Python has none.

    made = importlib.import_module(f"mpe2.{name.removeprefix(_AGENTS)}").parallel_env()
    made = supersuit.pad_action_space_v0(supersuit.pad_observations_v0(made))
    made = supersuit.pettingzoo_env_to_vec_env_v1(made)
    copies = max(num_envs // made.num_envs, 1)
    made = supersuit.concat_vec_envs_v1(
        made, copies, num_cpus=0, base_class="stable_baselines3"
    )
    inside = made.venv
    made.seed = lambda seed: inside.reset(seed=seed)  # It has none of its own.
    return vec_env.VecMonitor(made)


def _argument(value: Any) -> Any:
    """Returns a schedule for `[number]`, which falls linearly to 0."""
    if not isinstance(value, list):
        return value
    (first,) = value
    return lambda remaining: first * remaining


def score(model: Any, task: dict[str, Any]) -> float:
    """Returns the mean return of greedy episodes."""
    environment = make_environment(task["environment"], 1, 123_456)
    if isinstance(model.env, vec_env.VecNormalize):
        environment = vec_env.VecNormalize(
            environment, training=False, norm_reward=False, norm_obs=model.env.norm_obs
        )
        environment.obs_rms = model.env.obs_rms
    mean, _ = evaluation.evaluate_policy(
        model, environment, _EPISODES, deterministic=True
    )
    return float(mean)


def main(words: list[str]) -> None:
    """Trains, and prints the return, the processor seconds and the versions."""
    task, seed = json.loads(words[0]), int(words[1])
    torch.set_num_threads(1)
    model = make(task, seed)
    model.learn(task["steps"])
    seconds = time.process_time()
    versions = (
        f"python {platform.python_version()} torch {torch.__version__} "
        f"stable-baselines3 {stable_baselines3.__version__} "
        f"gymnasium {gymnasium.__version__}"
    )
    result = {"return": score(model, task), "seconds": seconds, "versions": versions}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
