"""Makes native environments by the names of their Gymnasium counterparts."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Callable

from tfrl.environments.native import (
    acrobot,
    bit_flipping,
    cart_pole,
    mountain_car,
    native_environment,
    pendulum,
)
from tfrl.environments.native.dynamics import Dynamics

_DYNAMICS: dict[str, Callable[[], Dynamics]] = {
    "Acrobot-v1": acrobot.dynamics,
    "CartPole-v0": lambda: cart_pole.dynamics(max_episode_steps=200),
    "CartPole-v1": cart_pole.dynamics,
    "MountainCar-v0": mountain_car.dynamics,
    "MountainCarContinuous-v0": mountain_car.continuous_dynamics,
    "Pendulum-v1": pendulum.dynamics,
}


def load(
    environment_name: str,
    batch_size: int = 1,
    seed: int | None = None,
    max_episode_steps: int | None = None,
) -> native_environment.NativeEnvironment:
    """Makes a native environment, with Gymnasium's dynamics and specs.

    Gymnasium has no "BitFlipping10-v0"; see `bit_flipping.from_name`.

    Args:
      environment_name: One of `names()`, "CartPole" for the newest version, or
        "BitFlipping10-v0", with any number of bits.
      batch_size: The number of members.
      seed: The seed of the random numbers; None follows `tf.random.set_seed`.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for Gymnasium's limit, or the number of bits; 0 for no limit.

    Raises:
      ValueError: If there is no environment of that name, `batch_size` is not
        positive, or the limit is negative.
    """
    dynamics = _dynamics(_find(environment_name), max_episode_steps)
    return native_environment.NativeEnvironment(dynamics, batch_size, seed)


def names() -> list[str]:
    """The names of Gymnasium's environments that `load` knows."""
    return sorted(_DYNAMICS)


# One object for all environments of a kind, so that its functions are checked once.
@functools.lru_cache(maxsize=None, typed=True)
def _dynamics(name: str, max_episode_steps: int | None) -> Dynamics:
    make = _DYNAMICS.get(name) or functools.partial(bit_flipping.from_name, name)
    dynamics = make()
    if max_episode_steps is None:
        return dynamics
    return dataclasses.replace(dynamics, max_episode_steps=max_episode_steps or None)


def _find(environment_name: str) -> str:
    versions = [name for name in names() if name.startswith(f"{environment_name}-v")]
    if environment_name in _DYNAMICS or bit_flipping.is_task(environment_name):
        return environment_name
    if versions:
        return versions[-1]
    lower = {name.lower(): name for name in names()}
    near = difflib.get_close_matches(environment_name.lower(), lower, n=1)
    hint = f"did you mean {lower[near[0]]}?" if near else "write its Dynamics yourself."
    raise ValueError(
        f"environment_name: got {environment_name!r}, expected one of "
        f"{', '.join(names())}; {hint}"
    )
