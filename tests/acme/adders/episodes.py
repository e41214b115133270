"""Episodes for the tests of the adders."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import dm_env
import numpy as np


def time_steps(
    rewards: list[Any],
    observation: Callable[[int], Any] = np.float32,
    *,
    first: int = 0,
    is_truncated: bool = False,
    discount: Any = 1.0,
) -> Iterator[dm_env.TimeStep]:
    """Yields an episode; time step `t` has `observation(first + t)`.

    Args:
      rewards: The rewards, one for each action.
      observation: Makes an observation of a number.
      first: The number of the first observation.
      is_truncated: Whether the last discount is not 0.
      discount: The other discounts.
    """
    yield dm_env.TimeStep(dm_env.StepType.FIRST, None, None, observation(first))
    discount = np.asarray(discount, np.float32)
    for t in range(1, len(rewards) + 1):
        is_last = t == len(rewards)
        yield dm_env.TimeStep(
            dm_env.StepType.LAST if is_last else dm_env.StepType.MID,
            rewards[t - 1],
            discount * np.float32(is_truncated or not is_last),
            observation(first + t),
        )


def add_episode(
    adder: Any,
    steps: Iterator[dm_env.TimeStep],
    action: Callable[[int], Any] = np.int32,
    extras: Callable[[int], Any] = lambda t: (),
    until: int | None = None,
) -> None:
    """Adds an episode; step `t` has `action(10 + t)` and `extras(t)`.

    Args:
      adder: The adder.
      steps: See `time_steps`.
      action: Makes an action of a number.
      extras: Makes the extras of step `t`.
      until: The number of steps to add; None for all.
    """
    adder.add_first(next(steps))
    for t, step in enumerate(itertools.islice(steps, until)):
        adder.add(action(10 + t), step, extras(t))


def floats(*numbers: float) -> list[Any]:
    """Returns the numbers as NumPy scalars, float32."""
    return [np.float32(number) for number in numbers]
