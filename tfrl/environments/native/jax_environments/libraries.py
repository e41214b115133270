"""The libraries of environments in JAX: a row, and a function that makes them.

A library is imported only where one of its names is used.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tfrl.environments import extras
from tfrl.environments.native.jax_environments import forms
from tfrl.specs import array_spec


class Made(NamedTuple):
    """An environment of a library.

    Attributes:
      rules: Its rules.
      action_spec: The nest of array specs of an action.
      observation_bounds: Pairs of the least and the greatest value, in dicts and tuples
        as in the observation; None, also for a part of it, for no bounds.
      max_episode_steps: The steps after which an episode is truncated; None for no
        limit, or if only the rules know it.
      render: `render(state) -> uint8 [height, width, 3]` draws the library's state, of
        NumPy arrays, of one member; None if the library does not draw.
    """

    rules: forms.Rules
    action_spec: Any
    observation_bounds: Any = None
    max_episode_steps: int | None = None
    render: Callable[[Any], Any] | None = None


@dataclasses.dataclass(frozen=True)
class Library:
    """A library of environments.

    Attributes:
      prefix: The beginning of the names of its environments here, with a slash.
      module: The module to import.
      distribution: The name of its package.
      make: Takes a name without the prefix, and makes the environment.
      names: Returns the names, without the prefix.
      films: Whether it draws its states.
    """

    prefix: str
    module: str
    distribution: str
    make: Callable[[str], Made]
    names: Callable[[], Iterable[str]]
    films: bool = False

    def require(self) -> None:
        """Raises an ImportError that says what to install, if it is missing."""
        extra = self.prefix.rstrip("/")
        extras.require(
            f"environment {self.prefix}...",
            f"pip install 'tfrl[{extra}]'",
            self.module,
        )

    def check(self, name: str) -> None:
        """Raises a ValueError if there is no environment of a name, without prefix."""
        known = sorted(self.names())
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:3]
            raise ValueError(
                f"environment: got {self.prefix + name!r}, expected one of "
                f"{len(known)} names; did you mean "
                f"{' or '.join(self.prefix + each for each in near)}?"
            )


def find(name: str) -> tuple[Library, str] | None:
    """Returns the library of an environment, and its name without the prefix."""
    for library in LIBRARIES:
        if name.startswith(library.prefix):
            return library, name.removeprefix(library.prefix)
    return None


def discrete(number: int) -> array_spec.BoundedArraySpec:
    """Returns the spec of one of a number of actions."""
    return array_spec.BoundedArraySpec((), np.int32, 0, number - 1, name="action")


def _make_gymnax(name: str) -> Made:
    import gymnax

    environment, params = gymnax.make(name)
    return of_gymnax(environment, params)


def of_gymnax(environment: Any, params: Any) -> Made:
    """Returns an environment with gymnax's spaces, whose parameters are given."""
    return Made(
        forms.gymnax(environment, params),
        action_of_space(environment.action_space(params)),
        bounds_of_space(environment.observation_space(params)),
        getattr(params, "max_steps_in_episode", None),
    )


def action_of_space(space: Any) -> Any:
    """Returns the spec of an action in a space of gymnax."""
    if hasattr(space, "n"):
        return discrete(int(space.n))
    low, high = (np.broadcast_to(x, space.shape) for x in (space.low, space.high))
    return array_spec.BoundedArraySpec(
        space.shape, np.float32, low, high, name="action"
    )


def bounds_of_space(space: Any) -> Any:
    """Returns the bounds of the observations in a space of gymnax."""
    spaces = getattr(space, "spaces", None)
    if isinstance(spaces, dict):
        return {name: bounds_of_space(each) for name, each in spaces.items()}
    if isinstance(spaces, tuple | list):
        return tuple(map(bounds_of_space, spaces))
    if hasattr(space, "n"):
        return 0, int(space.n) - 1
    return np.asarray(space.low), np.asarray(space.high)


def _gymnax_names() -> Iterable[str]:
    import gymnax

    return gymnax.registered_envs


# Steps of an episode in all of Brax's papers and programs.
_BRAX_STEPS = 1000


def _make_brax(name: str) -> Made:
    from brax import envs

    environment = envs.get_environment(name)
    spec = array_spec.BoundedArraySpec(
        (environment.action_size,), np.float32, -1, 1, name="action"
    )
    return Made(forms.brax(environment), spec, max_episode_steps=_BRAX_STEPS)


def _brax_names() -> Iterable[str]:
    from brax import envs

    return envs._envs


def _make_jumanji(name: str) -> Made:
    import jumanji

    environment = jumanji.make(name)
    return Made(
        forms.dm_env(environment),
        _action_of_jumanji(environment.action_spec),
        _bounds_of_jumanji(environment.observation_spec),
    )


def _action_of_jumanji(spec: Any) -> Any:
    return array_spec.BoundedArraySpec(
        spec.shape, spec.dtype, spec.minimum, spec.maximum, name="action"
    )


def _bounds_of_jumanji(spec: Any) -> Any:
    parts = getattr(spec, "_specs", None)
    if parts:
        return {name: _bounds_of_jumanji(part) for name, part in parts.items()}
    if hasattr(spec, "minimum"):
        return np.asarray(spec.minimum), np.asarray(spec.maximum)
    return None


def _jumanji_names() -> Iterable[str]:
    import jumanji

    return jumanji.registered_environments()


LIBRARIES = (
    Library("gymnax/", "gymnax", "gymnax", _make_gymnax, _gymnax_names),
    Library("brax/", "brax", "brax", _make_brax, _brax_names),
    Library("jumanji/", "jumanji", "jumanji", _make_jumanji, _jumanji_names),
)
