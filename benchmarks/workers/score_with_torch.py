"""Trains with Stable-Baselines3, and scores the final weights.

    PYTHON benchmarks/workers/score_with_torch.py TASK SEED

`benchmarks.score_peers` makes the task, in JSON. PYTHON is a Python with
stable-baselines3 and the environment's packages. The last line of the output is JSON.
"""

from __future__ import annotations

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
    environment = env_util.make_vec_env(task["environment"], task["num_envs"], seed)
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


def _argument(value: Any) -> Any:
    """Returns a schedule for `[number]`, which falls linearly to 0."""
    if not isinstance(value, list):
        return value
    (first,) = value
    return lambda remaining: first * remaining


def score(model: Any, task: dict[str, Any]) -> float:
    """Returns the mean return of greedy episodes."""
    environment = env_util.make_vec_env(task["environment"], seed=123_456)
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
