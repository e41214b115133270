"""The bandit problems by name, as the command and the algorithms find them.

>>> from tfrl.bandits import environments
>>> environments.load("WheelBandit-v0", batch_size=2, seed=0).reset().is_first().numpy()
array([ True,  True])
"""

from __future__ import annotations

import functools
from typing import Any

from tfrl.environments import native, suites


@functools.cache
def dynamics(name: str) -> Any:
    """Returns the dynamics of a problem in `names()`."""
    from tfrl.bandits.environments import problems  # Imports TensorFlow.

    made = {
        "BernoulliBandit-v0": lambda: problems.bernoulli([0.1, 0.5, 0.6, 0.4, 0.3]),
        "LinearBandit-v0": problems.linear,
        "DriftingBandit-v0": lambda: problems.linear(change=problems.drifting()),
        "PiecewiseBandit-v0": lambda: problems.linear(change=problems.piecewise()),
        "PerArmBandit-v0": problems.per_arm_linear,
        "PaddedArmsBandit-v0": lambda: problems.per_arm_linear(has_padding=True),
        "WheelBandit-v0": problems.wheel,
    }
    return made[name]()


_NAMES = (
    "BernoulliBandit-v0",
    "DriftingBandit-v0",
    "LinearBandit-v0",
    "PaddedArmsBandit-v0",
    "PerArmBandit-v0",
    "PiecewiseBandit-v0",
    "WheelBandit-v0",
)


def names() -> list[str]:
    """Returns the names of the problems."""
    return list(_NAMES)


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
    if environment_name not in _NAMES:
        raise ValueError(
            f"environment_name: got {environment_name!r}, expected one of "
            f"{', '.join(map(repr, _NAMES))}."
        )
    return native.NativeEnvironment(dynamics(environment_name), batch_size, seed)


def add_suite() -> None:
    """Lets `environments.suites` find the names."""
    suites.add(
        suites.Suite(matches=_NAMES.__contains__, dynamics=dynamics, films=False)
    )
