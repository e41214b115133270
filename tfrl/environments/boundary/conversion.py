"""Environments of Gymnasium, dm_env and tfrl, as users give them, in one form."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tfrl import environments

# Of smaller pictures the convolutions for Atari's games leave nothing.
_SMALLEST_PICTURE = 36

LARGE_CONTROL = "continuous control beyond classic size"
# The most numbers in observations and in actions of classic control.
_CLASSIC_OBSERVATION, _CLASSIC_ACTION = 4, 1


def _kinds() -> dict[type, Callable[[Any], Any]]:
    """Returns how environments of other libraries become ours, by their classes."""
    import dm_env
    import gymnasium

    found: dict[type, Callable[[Any], Any]] = {
        environments.TFEnvironment: lambda given: given,
        environments.PyEnvironment: lambda given: given,
        gymnasium.vector.VectorEnv: environments.VectorPyEnvironment,
        gymnasium.Env: _wrap_gym,
        dm_env.Environment: _wrap_dm_env,
    }
    return found | dict.fromkeys(_kinds_with_agents(), _wrap_agents)


def _kinds_with_agents() -> tuple[type, ...]:
    """Returns PettingZoo's classes; none before somebody has imported it."""
    pettingzoo = sys.modules.get("pettingzoo")
    return () if pettingzoo is None else (pettingzoo.ParallelEnv, pettingzoo.AECEnv)


def _wrap_gym(given: Any) -> environments.PyEnvironment:
    from tfrl.environments.gymnasium import masks

    return environments.suite_gym.wrap_env(masks.with_mask(given))


def _wrap_agents(given: Any) -> environments.PyEnvironment:
    parallel = environments.suite_pettingzoo.as_parallel(given)
    return environments.AgentsPyEnvironment([parallel])


def has_agents(given: Any) -> bool:
    """Whether something is an environment of PettingZoo, with several agents."""
    return isinstance(given, _kinds_with_agents())


def _wrap_dm_env(given: Any) -> environments.PyEnvironment:
    # dm_control's environments, and those in its wrappers, have physics.
    is_control = hasattr(given, "physics")
    kind = environments.DmControlWrapper if is_control else environments.DmEnvWrapper
    return kind(given)


def is_environment(given: Any) -> bool:
    """Whether something is an environment, and not a name or a function."""
    return not isinstance(given, str | type) and isinstance(given, tuple(_kinds()))


def batch_size_of(given: Any) -> int | None:
    """Returns how many environments are given; None for a name or a function."""
    if not is_environment(given):
        return None
    if has_agents(given):
        return len(given.possible_agents)
    count = getattr(given, "num_envs", None) or getattr(given, "batch_size", None)
    return int(count or 1)


def wrap(given: Any) -> environments.PyEnvironment:
    """Returns an environment as one of tfrl.

    Raises:
      TypeError: It is none.
    """
    for kind, convert in _kinds().items():
        if isinstance(given, kind):
            return convert(given)
    raise TypeError(
        f"environment: the function returned a {type(given).__name__}, expected an "
        "environment of Gymnasium, dm_env, PettingZoo or tfrl.environments."
    )


def kind_of(made: Any) -> str | None:
    """Returns an environment's kind, see `presets.Preset`.

    It is "pictures" for one picture, "pictures and more" for a nest with pictures, the
    kind by size of other environments, or None. A nest in which a picture is too small
    for Atari's convolutions has no kind.
    """
    if has_agents(made):
        made = wrap(made)
    spec, action = (_find_spec(made, part) for part in ("observation", "action"))
    pictures = [min(leaf.shape[:2]) for leaf in _leaves(spec) if _is_picture(leaf)]
    if not pictures:
        return kind_by_size(*map(_count_floats, (spec, action)))
    if min(pictures) < _SMALLEST_PICTURE:
        return None
    return "pictures" if _is_picture(spec) else "pictures and more"


def kind_by_size(observations: int | None, actions: int | None) -> str | None:
    """Returns the kind of an environment without pictures.

    Args:
      observations: The floats of an observation; None if it has other parts.
      actions: The floats of an action; None if it has other parts.
    """
    if observations is None or actions is None:
        return None
    is_large = observations > _CLASSIC_OBSERVATION or actions > _CLASSIC_ACTION
    return LARGE_CONTROL if is_large else None


def _find_spec(made: Any, part: str) -> Any:
    """Returns the space or the spec of an observation or an action; None for none."""
    names = (f"single_{part}_space", f"{part}_space", f"{part}_spec")
    spec = next((getattr(made, name) for name in names if hasattr(made, name)), None)
    return spec() if callable(spec) else spec


def _count_floats(spec: Any) -> int | None:
    """Returns the numbers of a nest; None unless it is of vectors of floats."""
    leaves = list(_leaves(spec))
    names = [getattr(getattr(leaf, "dtype", None), "name", "") for leaf in leaves]
    if not all(name.startswith("float") for name in names):
        return None
    if any(len(leaf.shape) > 1 for leaf in leaves):
        return None
    return sum(math.prod(leaf.shape) for leaf in leaves)


def _leaves(nest: Any) -> Iterator[Any]:
    """Yields the spaces or specs of a nest."""
    parts = getattr(nest, "spaces", nest)  # Gymnasium's dicts and tuples have these.
    if isinstance(parts, Mapping):
        parts = parts.values()
    elif not isinstance(parts, Sequence):
        yield nest
        return
    for part in parts:
        yield from _leaves(part)


def _is_picture(spec: Any) -> bool:
    name = getattr(getattr(spec, "dtype", None), "name", "")
    return name == "uint8" and len(spec.shape) == 3
