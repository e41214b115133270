"""The bandit problems by name, as the command and the algorithms find them.

>>> from tfrl.bandits import environments
>>> environments.load("WheelBandit-v0", batch_size=2, seed=0).reset().is_first().numpy()
array([ True,  True])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tfrl.environments import native, suites

# The function that makes each problem, of the module `problems`, by its name.
_MADE_BY: dict[str, Callable[[Any], Any]] = {
    "BernoulliBandit-v0": lambda problems: problems.bernoulli(
        [0.1, 0.5, 0.6, 0.4, 0.3]
    ),
    "DriftingBandit-v0": lambda problems: problems.linear(change=problems.drifting()),
    "LinearBandit-v0": lambda problems: problems.linear(),
    "PaddedArmsBandit-v0": lambda problems: problems.per_arm_linear(has_padding=True),
    "PerArmBandit-v0": lambda problems: problems.per_arm_linear(),
    "PiecewiseBandit-v0": lambda problems: problems.linear(change=problems.piecewise()),
    "WheelBandit-v0": lambda problems: problems.wheel(),
}


@functools.cache
def dynamics(name: str) -> Any:
    """Returns the dynamics of a problem in `names()`."""
    from tfrl.bandits.environments import problems  # Imports TensorFlow.

    return _MADE_BY[name](problems)


def names() -> list[str]:
    """Returns the names of the problems."""
    return list(_MADE_BY)


def load(
    environment_name: str, batch_size: int = 1, seed: int | None = None
) -> native.NativeEnvironment:
    """Makes a bandit.

    Args:
      environment_name: One of `names()`.
      batch_size: The number of members, which play a round each in a step.
      seed: The seed of the random numbers; None follows `tf.random.set_seed`.

    Raises:
      ValueError: There is no such bandit.
    """
    if environment_name not in _MADE_BY:
        raise ValueError(
            f"environment_name: got {environment_name!r}, expected one of "
            f"{', '.join(map(repr, _MADE_BY))}."
        )
    return native.NativeEnvironment(dynamics(environment_name), batch_size, seed)


def add_suite() -> None:
    """Lets `environments.suites` find the names."""
    suites.add(
        suites.Suite(
            matches=_MADE_BY.__contains__, dynamics=dynamics, films=False, names=names
        )
    )
