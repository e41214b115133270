"""What the workers that measure tfrl share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.workers import serving
from tfrl.algorithms import registry, worlds
from tfrl.environments import native as native_environments


def algorithm(name: str, environment: str, native: bool, **settings: Any) -> Any:
    """Makes an algorithm with its usual settings, some of them given.

    Args:
      name: The algorithm's name.
      environment: The environment's name; empty for the algorithm's usual one.
      native: Whether the environment is the one that is written in TensorFlow.
      **settings: Settings in place of the usual ones.
    """
    found = registry.find(name)
    environment = environment or found.environment_name
    kind: Callable[..., Any] = found
    usual = kind(environment, **settings)
    load = native_environments.load if native else worlds.make_environment
    return kind(
        load(environment, usual.num_envs, usual.seed),
        environment_name=environment,
        settings=usual.settings,
    )


def loop_task(loop: Any) -> serving.Task:
    """Makes the task that runs a training loop."""

    def run(count: int) -> dict[str, int]:
        before = loop.info().environment_steps
        steps = loop.run(count).environment_steps - before
        return {"iterations": count, "environment steps": steps}

    return serving.Task(run)
