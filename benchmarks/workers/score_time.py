"""What the workers of `benchmarks.time_to_score` share: their task, and its clock.

A worker trains with one library until a greedy evaluation reaches the task's return,
or until the task's steps are over. Its arguments are the task in JSON and a seed, and
the last line that it prints is JSON, too; see `Watch.result`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

EPISODES = 20
_FIRST_SEED = 1_000_000  # Of the episodes; training has smaller ones.

Predict = Callable[[Any], Any]  # From observations `[B, ...]` to actions `[B, ...]`.


def processor_seconds() -> float:
    """Returns the processor time of this process, its start included.

    It includes the processes that it has started and that have ended.
    """
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Watch:
    """Evaluates a policy while it is trained, and says when it is good enough.

    Attributes:
      steps: The environment steps, of all environments together, to train for.
      is_over: Whether the return has been reached.
    """

    def __init__(
        self,
        task: Mapping[str, Any],
        play: Callable[[Predict], float],
        clock: Callable[[], float] = processor_seconds,
    ) -> None:
        """Stores what the evaluations need.

        Args:
          task: Its "score" is the return to reach; it is evaluated after each "every"
            environment steps, and trained for at most "steps".
          play: Returns the mean return of an evaluation; see `play`.
          clock: Returns the seconds so far.
        """
        self.steps: int = task["steps"]
        self.is_over = False
        self._score, self._every = task["score"], task["every"]
        self._play, self._clock = play, clock
        self._next = self._every
        self._evaluating = 0.0
        self._last: dict[str, Any] = {}
        self._curve: list[tuple[float, float]] = []

    def is_due(self, steps: int) -> bool:
        """Returns whether to evaluate after so many environment steps."""
        return not self.is_over and steps >= min(self._next, self.steps)

    def evaluate(self, steps: int, predict: Predict) -> None:
        """Evaluates a policy; its time does not count.

        Args:
          steps: The environment steps so far.
          predict: The greedy policy.
        """
        started = self._clock()
        value = self._play(predict)
        self._last = {
            "steps": steps,
            "return": value,
            "seconds": started - self._evaluating,
        }
        self._curve.append((self._last["seconds"], value))
        print(json.dumps(self._last), file=sys.stderr, flush=True)
        self.is_over = value >= self._score
        self._next = (steps // self._every + 1) * self._every
        self._evaluating += self._clock() - started

    def result(self) -> dict[str, Any]:
        """Returns the last evaluation, and what came before it.

        Its fields are the "steps" and the "return" of the evaluation, whether the
        return is "reached", the "seconds" of the whole process before it without
        evaluations, and the "evaluation_seconds", with those of the last. "curve" has
        the seconds and the return of each evaluation.
        """
        return {
            **self._last,
            "reached": self.is_over,
            "evaluation_seconds": self._evaluating,
            "curve": self._curve,
        }


def play(environment: str, predict: Predict) -> float:
    """Returns the mean return of 20 episodes, whose starts are always the same.

    Args:
      environment: The name of a Gymnasium environment.
      predict: The policy; it is always given the observations of all episodes.
    """
    # Only here, because one library trains without it.
    import gymnasium

    environments = [gymnasium.make(environment) for _ in range(EPISODES)]
    observations = [
        each.reset(seed=_FIRST_SEED + number)[0]
        for number, each in enumerate(environments)
    ]
    returns, running = np.zeros(EPISODES), np.ones(EPISODES, bool)
    while running.any():
        actions = np.asarray(predict(_stacked(observations)))
        for number in np.flatnonzero(running):
            observations[number], reward, terminated, truncated, _ = environments[
                number
            ].step(actions[number])
            returns[number] += float(reward)
            running[number] = not (terminated or truncated)
    for each in environments:
        each.close()
    return float(returns.mean())


def _stacked(observations: Sequence[Any]) -> Any:
    """Returns arrays with one row for each observation."""
    first = observations[0]
    if isinstance(first, dict):
        return {name: np.stack([each[name] for each in observations]) for name in first}
    return np.stack(observations)


def main(
    train: Callable[[Mapping[str, Any], int, Watch], None], packages: Sequence[str]
) -> None:
    """Trains as the command line says, and prints the result.

    Args:
      train: Trains with a task, a seed and a watch.
      packages: The distributions whose versions are reported, if they are installed.
    """
    task, seed = json.loads(sys.argv[1]), int(sys.argv[2])
    watch = Watch(task, lambda predict: play(task["environment"], predict))
    train(task, seed, watch)
    result = {**watch.result(), "versions": _versions(packages)}
    print(json.dumps(result), flush=True)


def _versions(packages: Sequence[str]) -> str:
    found = [f"python {platform.python_version()}"]
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return " ".join(found)
