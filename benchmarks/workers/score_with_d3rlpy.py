"""Trains with d3rlpy on recorded steps, and scores the final weights.

    PYTHON benchmarks/workers/score_with_d3rlpy.py TASK SEED

`benchmarks.score_peers` makes the task, in JSON. PYTHON is a Python with d3rlpy and the
environment's packages. The last line of the output is JSON.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from typing import Any

import d3rlpy
import gymnasium
import numpy as np
import torch

_EPISODES = 50


def make(task: dict[str, Any]) -> Any:
    """Makes the algorithm of a task."""
    config = getattr(d3rlpy.algos, f"{task['algorithm']}Config")
    arguments = dict(task["arguments"])
    is_iql = task["algorithm"] == "IQL"
    prefixes = ["actor_", "critic_", *(["value_"] if is_iql else [])]
    if task["algorithm"].startswith("Discrete"):
        prefixes = [""]
    for prefix in prefixes:
        encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=task["layers"])
        arguments[f"{prefix}encoder_factory"] = encoder
    if task["is_normalized"]:
        scaler = d3rlpy.preprocessing.StandardObservationScaler()
        arguments["observation_scaler"] = scaler
    if task["reward_scale"] != 1:
        scaler = d3rlpy.preprocessing.MultiplyRewardScaler(task["reward_scale"])
        arguments["reward_scaler"] = scaler
    if is_iql:
        fall = d3rlpy.optimizers.lr_schedulers.CosineAnnealingLRFactory(task["steps"])
        adam = d3rlpy.optimizers.AdamFactory(lr_scheduler_factory=fall)
        arguments["actor_optim_factory"] = adam
    return config(**arguments).create(device=False)


def score(algorithm: Any, name: str) -> float:
    """Returns the mean return of greedy episodes."""
    environment = gymnasium.make(name)
    returns = []
    for episode in range(_EPISODES):
        # The first seed draws the first states of all episodes.
        observation, _ = environment.reset(seed=None if episode else 123_456)
        total, is_over = 0.0, False
        while not is_over:
            action = algorithm.predict(np.asarray([observation], np.float32))[0]
            observation, reward, terminated, truncated, _ = environment.step(action)
            total, is_over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def main(words: list[str]) -> None:
    """Trains, and prints the return, the processor seconds and the versions."""
    task, seed = json.loads(words[0]), int(words[1])
    torch.set_num_threads(1)
    d3rlpy.seed(seed)
    with np.load(task["data"]) as steps:
        dataset = d3rlpy.dataset.MDPDataset(**steps)
    algorithm = make(task)
    algorithm.fit(
        dataset,
        n_steps=task["steps"],
        n_steps_per_epoch=task["steps"],
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    )
    seconds = time.process_time()
    versions = (
        f"python {platform.python_version()} torch {torch.__version__} "
        f"d3rlpy {d3rlpy.__version__} gymnasium {gymnasium.__version__}"
    )
    returned = score(algorithm, task["environment"])
    print(json.dumps({"return": returned, "seconds": seconds, "versions": versions}))


if __name__ == "__main__":
    main(sys.argv[1:])
