"""Converts Gymnasium spaces to specs, and specs to spaces."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from tfrl.specs import array_spec, bounds


def spec_from_gym_space(
    space: gymnasium.Space[Any],
    dtype_map: Mapping[type, Any] | None = None,
    simplify_box_bounds: bool = True,
    name: str | None = None,
) -> Any:
    """Returns the nest of `BoundedArraySpec`s that describes a space's elements.

    `Discrete(n, start=s)` becomes int64 in `[s, s + n - 1]`. The infinite bounds of a
    `Box` become its dtype's limits. `Tuple` and `Dict` become tuples and dicts, whose
    specs are named by their path, such as 'observation/tuple_0/position'.

    Args:
      space: A `Box`, `Discrete`, `MultiDiscrete`, `MultiBinary`, or a `Tuple` or `Dict`
        of these.
      dtype_map: Maps classes of spaces to dtypes, such as `{gymnasium.spaces.Box:
        np.float32}`; None keeps the dtype of a space. Without an entry, `Box` and
        `Discrete` keep their dtypes, and `MultiDiscrete` and `MultiBinary` become
        int32.
      simplify_box_bounds: Whether bounds that are the same for all elements become a
        single number, which makes the printed spec shorter.
      name: The name of the spec, or the prefix of the names in a nest.

    Raises:
      ValueError: If there is a space of another kind.
    """
    return _to_spec(space, _Options(dtype_map or {}, simplify_box_bounds, name))


def space_from_spec(spec: Any) -> gymnasium.Space[Any]:
    """Returns the space for a nest of array specs.

    Bounded integers become `Discrete` (scalars) or `MultiDiscrete` (arrays, unless they
    are bytes, such as images). All other specs become a `Box`. Floating bounds at the
    limits of the dtype become infinite.

    Raises:
      ValueError: If something in the nest is not an array spec of numbers or booleans.
    """
    if isinstance(spec, Mapping):
        return gymnasium.spaces.Dict(
            {key: space_from_spec(item) for key, item in spec.items()}
        )
    if isinstance(spec, tuple | list):
        return gymnasium.spaces.Tuple([space_from_spec(item) for item in spec])
    if not isinstance(spec, array_spec.ArraySpec) or spec.dtype.kind not in "biuf":
        raise ValueError(
            f"spec: got {spec!r} of type {type(spec).__name__}, expected ArraySpecs of "
            "numbers or booleans; convert tensor specs with tensor_spec.to_array_spec."
        )
    if _is_choice(spec):
        return _to_discrete(spec)
    return _to_box(array_spec.BoundedArraySpec.from_spec(spec))


class _Options(NamedTuple):
    dtype_map: Mapping[type, Any]
    simplify: bool
    name: str | None

    def dtype(self, space: gymnasium.Space[Any], default: Any) -> Any:
        for kind in type(space).__mro__:
            if kind in self.dtype_map:
                dtype = self.dtype_map[kind]
                return space.dtype if dtype is None else dtype
        return default

    def child(self, key: str) -> _Options:
        return self._replace(name=f"{self.name}/{key}" if self.name else key)


@functools.singledispatch
def _to_spec(space: Any, options: _Options) -> Any:
    kind = type(space)
    where = options.name or "space"
    if kind.__module__.partition(".")[0] == "gym":
        problem = f"{space!r} of the old Gym, expected one of Gymnasium"
        remedy = "convert the environment with shimmy.GymV21CompatibilityV0"
    else:
        problem = _problem(space)
        remedy = _remedy(where)
    raise ValueError(f"{where}: got the space {problem}; {remedy}.")


def _problem(space: Any) -> str:
    """Says why a space has no spec."""
    kind = type(space).__qualname__
    if getattr(getattr(space, "dtype", None), "kind", None) == "U":
        return f"{kind}, whose elements are texts, which no network here reads"
    if isinstance(space, gymnasium.spaces.Sequence):
        return (
            f"{kind}, whose elements have different lengths, but networks here take "
            "arrays of one shape"
        )
    if isinstance(space, gymnasium.spaces.Graph):
        return (
            f"{kind}, whose elements have different numbers of nodes, but networks "
            "here take arrays of one shape"
        )
    if isinstance(space, gymnasium.spaces.OneOf):
        return (
            f"{kind}, whose elements belong to one of several spaces at a time, but "
            "networks here take the same arrays at each step"
        )
    return (
        f"{space!r} of type {type(space).__module__}.{kind}, expected Gymnasium's Box, "
        "Discrete, MultiDiscrete or MultiBinary, or a Tuple or Dict of these"
    )


def _remedy(where: str) -> str:
    """Says what to do about a part of an observation or an action without a spec."""
    root, _, part = where.partition("/")
    if root == "action":
        return (
            "wrap the environment with gymnasium.wrappers.TransformAction, whose "
            "function makes it of numbers"
        )
    encode = "turn it into an array with gymnasium.wrappers.TransformObservation"
    if root == "observation" and part:
        return f"leave it out with gymnasium.wrappers.FilterObservation, or {encode}"
    return encode


@_to_spec.register
def _(space: gymnasium.spaces.Discrete, options: _Options) -> Any:
    return array_spec.BoundedArraySpec(
        (),
        options.dtype(space, space.dtype),
        int(space.start),
        int(space.start) + int(space.n) - 1,
        options.name,
    )


@_to_spec.register
def _(space: gymnasium.spaces.MultiDiscrete, options: _Options) -> Any:
    start = np.asarray(space.start)
    return array_spec.BoundedArraySpec(
        space.shape,
        options.dtype(space, np.int32),
        _simplify(start),
        _simplify(start + (space.nvec - 1)),
        options.name,
    )


@_to_spec.register
def _(space: gymnasium.spaces.MultiBinary, options: _Options) -> Any:
    dtype = options.dtype(space, np.int32)
    return array_spec.BoundedArraySpec(space.shape, dtype, 0, 1, options.name)


@_to_spec.register
def _(space: gymnasium.spaces.Box, options: _Options) -> Any:
    dtype = np.dtype(options.dtype(space, space.dtype))
    low, high = _fit(space.low, dtype), _fit(space.high, dtype)
    if options.simplify:
        simple = _simplify(low), _simplify(high)
        # Simplify both or neither: one number and one array would look like a mistake.
        if simple[0].shape == simple[1].shape:
            low, high = simple
    return array_spec.BoundedArraySpec(space.shape, dtype, low, high, options.name)


@_to_spec.register
def _(space: gymnasium.spaces.Tuple, options: _Options) -> Any:
    return tuple(
        _to_spec(item, options.child(f"tuple_{index}"))
        for index, item in enumerate(space.spaces)
    )


@_to_spec.register
def _(space: gymnasium.spaces.Dict, options: _Options) -> Any:
    return {
        key: _to_spec(item, options.child(str(key)))
        for key, item in space.spaces.items()
    }


def _fit(bound: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Converts a bound of a box to `dtype`, which may be narrower than its dtype."""
    return bounds.clip_to_dtype(bound, dtype).astype(dtype)


def _simplify(bound: np.ndarray) -> np.ndarray:
    """Returns a 0-d array if all elements are the same, else `bound`."""
    if bound.size and np.all(bound == bound.flat[0]):
        return np.array(bound.flat[0], bound.dtype)
    return bound


def _is_choice(spec: array_spec.ArraySpec) -> bool:
    """Whether a spec describes a choice rather than a measured number."""
    if not isinstance(spec, array_spec.BoundedArraySpec) or spec.dtype.kind not in "iu":
        return False
    if spec.shape and spec.dtype.itemsize == 1:
        return False
    # Spaces hold the number of values in their own dtype.
    most = min(np.iinfo(np.int32).max, np.iinfo(spec.dtype).max)
    return bool(np.all(spec.num_values <= most))


def _to_discrete(spec: Any) -> gymnasium.Space[Any]:
    if spec.shape == ():
        return gymnasium.spaces.Discrete(
            int(spec.num_values), start=int(spec.minimum), dtype=spec.dtype.type
        )
    start = np.broadcast_to(spec.minimum, spec.shape).copy()
    return gymnasium.spaces.MultiDiscrete(
        spec.num_values, dtype=spec.dtype.type, start=start
    )


def _to_box(spec: array_spec.BoundedArraySpec) -> gymnasium.spaces.Box:
    low, high = spec.minimum, spec.maximum
    if array_spec.is_continuous(spec):
        least, greatest = bounds.dtype_limits(spec.dtype)
        low = np.where(low == least, -np.inf, low)
        high = np.where(high == greatest, np.inf, high)
    return gymnasium.spaces.Box(
        np.broadcast_to(low, spec.shape).astype(spec.dtype),
        np.broadcast_to(high, spec.shape).astype(spec.dtype),
        spec.shape,
        spec.dtype.type,
    )
