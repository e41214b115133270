"""Trains with Stable-Baselines3, or with SBX, until an evaluation reaches a return.

    PYTHON -m benchmarks.workers.score_time_with_torch TASK SEED

See `score_time`; the task's "package" is that of the algorithms, which have the same
API in both libraries.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common import callbacks

from benchmarks.workers import score_time, score_with_torch


class Evaluating(callbacks.BaseCallback):
    """Evaluates between the rollouts, when nothing is half done."""

    def __init__(self, watch: score_time.Watch) -> None:
        """Keeps the watch."""
        super().__init__()
        self._watch = watch

    def _on_rollout_start(self) -> None:
        if self._watch.is_due(self.num_timesteps):
            self._watch.evaluate(self.num_timesteps, self._predict)

    def _on_training_end(self) -> None:
        self._on_rollout_start()

    def _on_step(self) -> bool:
        return not self._watch.is_over

    def _predict(self, observations: Any) -> Any:
        normalizer = self.model.get_vec_normalize_env()
        if normalizer is not None:
            observations = normalizer.normalize_obs(observations)
        return self.model.predict(observations, deterministic=True)[0]


def train(task: Mapping[str, Any], seed: int, watch: score_time.Watch) -> None:
    """Trains an algorithm of a package."""
    torch.set_num_threads(1)
    package = importlib.import_module(task["package"])
    model = score_with_torch.make(dict(task), seed, package)
    model.learn(watch.steps, callback=Evaluating(watch))


if __name__ == "__main__":
    score_time.main(
        train, ("stable-baselines3", "sbx-rl", "torch", "jax", "gymnasium", "numpy")
    )
