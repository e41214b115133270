"""Specs of NumPy arrays: shape, dtype, name, and optionally inclusive bounds.

Environments describe their actions, observations and rewards with these specs. This
module only needs NumPy, so that environment workers and the replay server start without
TensorFlow. `tfrl.specs.tensor_spec` has the counterparts for tensors.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.specs import bounds, matching

_MAX_INT64 = np.iinfo(np.int64).max


class ArraySpec:
    """The shape, dtype and name of a NumPy array or scalar.

    Two specs are equal if their shapes and dtypes are equal; the name does not count.
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Iterable[Any], dtype: Any, name: str | None = None):
        """Describes an array.

        Args:
          shape: The dimensions; None stands for a dimension of any length.
          dtype: A `tf.DType`, or any argument of `np.dtype`.
          name: A name for messages and signatures.

        Raises:
          TypeError: If `shape` is not an iterable of integers or `dtype` is not a
            dtype.
        """
        self._shape = _as_shape(shape)
        self._dtype = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        self._name = name

    @property
    def shape(self) -> tuple[Any, ...]:
        """The dimensions, a tuple."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    def check_array(self, array: Any) -> bool:
        """Whether `array`, an array or a scalar, has the shape and dtype of the spec.

        Lists and tuples never conform: nothing is converted.
        """
        if isinstance(array, np.ndarray | np.generic):
            return matching.matches(array, self)
        if isinstance(array, numbers.Number):
            return self._shape == () and self._dtype == np.dtype(type(array))
        return False

    @staticmethod
    def from_array(array: Any, name: str | None = None) -> ArraySpec:
        """Returns the spec of an array or a number.

        Raises:
          ValueError: If `array` is neither an array nor a number.
        """
        if isinstance(array, np.ndarray | np.generic):
            return ArraySpec(array.shape, array.dtype, name)
        if isinstance(array, numbers.Number):
            return ArraySpec((), type(array), name)
        raise ValueError(
            f"array: got {array!r} of type {type(array).__name__}, expected a NumPy "
            "array or a number; convert it with np.asarray first."
        )

    @staticmethod
    def from_spec(spec: Any) -> ArraySpec:
        """Returns an `ArraySpec` with the shape, dtype and name of any spec."""
        return ArraySpec(spec.shape, spec.dtype, spec.name)

    def replace(
        self, shape: Any = None, dtype: Any = None, name: str | None = None
    ) -> ArraySpec:
        """Returns a copy with the given fields changed; None keeps a field."""
        return ArraySpec(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.name if name is None else name,
        )

    def __repr__(self) -> str:
        return (
            f"ArraySpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArraySpec):
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return ArraySpec, (self.shape, self.dtype, self.name)


class BoundedArraySpec(ArraySpec):
    """An `ArraySpec` with bounds that its values may reach but not pass.

    The bounds are inclusive, so `BoundedArraySpec((), np.int32, 0, 2)` admits 0, 1 and
    2. They broadcast against the shape, and equality compares them, too.
    """

    __slots__ = ("_maximum", "_minimum")

    def __init__(
        self,
        shape: Iterable[Any],
        dtype: Any,
        minimum: Any = None,
        maximum: Any = None,
        name: str | None = None,
    ):
        """Describes a bounded array.

        Args:
          shape: The dimensions.
          dtype: An integer, floating or boolean dtype.
          minimum: The least values, broadcastable to `shape`; None for the dtype's
            least value. An infinite bound of a floating dtype becomes its largest
            finite number.
          maximum: The greatest values, in the same form.
          name: A name for messages and signatures.

        Raises:
          ValueError: If a bound does not broadcast to `shape`, is NaN, or lies outside
            of what `dtype` can hold, or if a minimum is above its maximum.
          TypeError: If `shape` is not a shape, `dtype` is not a dtype, or the dtype has
            no order.
        """
        super().__init__(shape, dtype, name)
        self._minimum = bounds.as_bound("minimum", minimum, self._shape, self._dtype)
        self._maximum = bounds.as_bound("maximum", maximum, self._shape, self._dtype)
        if np.any(self._minimum > self._maximum):
            raise ValueError(
                f"minimum: got {self._minimum} with maximum {self._maximum}, expected "
                "no minimum above its maximum; did you swap them?"
            )

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedArraySpec:
        """Returns a bounded spec like `spec`; missing bounds are its dtype's limits."""
        if type(spec) is BoundedArraySpec and name in (None, spec.name):
            return spec
        return BoundedArraySpec(
            spec.shape,
            spec.dtype,
            getattr(spec, "minimum", None),
            getattr(spec, "maximum", None),
            spec.name if name is None else name,
        )

    @property
    def minimum(self) -> np.ndarray:
        """The least values, inclusive: a read-only array broadcastable to `shape`."""
        return self._minimum

    @property
    def maximum(self) -> np.ndarray:
        """The greatest values, inclusive: read-only, broadcastable to `shape`."""
        return self._maximum

    @property
    def num_values(self) -> Any:
        """The number of values of each element of a discrete spec; None for others.

        The numbers are an int64 array of the spec's shape. If a 64-bit range has more
        values than int64 can count, the number is the largest int64.
        """
        if not is_discrete(self):
            return None
        # The difference of two 64-bit integers fits into 64 bits without a sign.
        span = self._maximum.astype(np.uint64) - self._minimum.astype(np.uint64)
        count = np.minimum(span, np.uint64(_MAX_INT64 - 1)).astype(np.int64) + 1
        return np.broadcast_to(count, self.shape) + np.int64(0)

    def check_array(self, array: Any) -> bool:
        """Whether `array` has the spec's shape and dtype and is within the bounds."""
        return super().check_array(array) and bool(
            np.all(array >= self._minimum) and np.all(array <= self._maximum)
        )

    def replace(  # type: ignore[override]
        self,
        shape: Any = None,
        dtype: Any = None,
        minimum: Any = None,
        maximum: Any = None,
        name: str | None = None,
    ) -> BoundedArraySpec:
        """Returns a copy with the given fields changed; None keeps a field.

        If the new dtype cannot hold the old bounds, its limits replace them.
        """
        plain = super().replace(shape, dtype, name)

        def kept(bound: np.ndarray) -> np.ndarray:
            same = plain.dtype == self.dtype
            return bound if same else bounds.clip_to_dtype(bound, plain.dtype)

        return BoundedArraySpec(
            plain.shape,
            plain.dtype,
            kept(self.minimum) if minimum is None else minimum,
            kept(self.maximum) if maximum is None else maximum,
            plain.name,
        )

    def __repr__(self) -> str:
        return (
            f"BoundedArraySpec(shape={self.shape}, dtype={self.dtype!r}, "
            f"name={self.name!r}, minimum={self.minimum}, maximum={self.maximum})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundedArraySpec):
            return False
        return (
            super().__eq__(other)
            and bool(np.all(self.minimum == other.minimum))
            and bool(np.all(self.maximum == other.maximum))
        )

    # Bounds may broadcast in different ways and be equal, so they stay out of the hash.
    __hash__ = ArraySpec.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.shape, self.dtype, self.minimum, self.maximum, self.name)
        return BoundedArraySpec, fields


def is_bounded(spec: Any) -> bool:
    """Whether `spec` is a `BoundedArraySpec`."""
    return isinstance(spec, BoundedArraySpec)


def of_nest(specs: Any) -> Any:
    """Returns a nest of specs with array specs for its tensor specs, keeping bounds."""
    return tree.map_structure(_of_tensors, specs)


def _of_tensors(spec: Any) -> Any:
    # TensorFlow is not imported, because workers run environments without it.
    if not any(base.__module__.startswith("tensorflow.") for base in type(spec).mro()):
        return spec
    is_plain = getattr(spec, "minimum", None) is None
    return (ArraySpec if is_plain else BoundedArraySpec).from_spec(spec)


def is_discrete(spec: Any) -> bool:
    """Whether the dtype is an integer; booleans are not."""
    return np.issubdtype(spec.dtype, np.integer)


def is_continuous(spec: Any) -> bool:
    """Whether the dtype is a floating dtype, including bfloat16."""
    return bounds.is_floating(spec.dtype)


def sample_bounded_spec(
    spec: BoundedArraySpec, rng: np.random.RandomState | np.random.Generator
) -> np.ndarray:
    """Draws an array uniformly from `spec`, integers with both bounds included.

    If a floating range is so wide that its width overflows, both bounds are halved, so
    that every sample is finite.
    """
    return _sample(spec, rng, spec.shape)


def _sample(
    spec: BoundedArraySpec,
    rng: np.random.RandomState | np.random.Generator,
    shape: tuple[int, ...],
) -> np.ndarray:
    """Draws an array of `shape`, which ends with the spec's."""
    if is_continuous(spec):
        low, high = (np.asarray(b, np.float64) for b in (spec.minimum, spec.maximum))
        too_wide = high / 2 - low / 2 > np.finfo(np.float64).max / 2
        scale = np.where(too_wide, 0.5, 1.0)
        sample = rng.uniform(low * scale, high * scale, shape)
        return np.asarray(sample).astype(spec.dtype)
    return np.asarray(_sample_integers(spec, rng, shape)).astype(spec.dtype)


def sample_spec_nest(
    structure: Any,
    rng: np.random.RandomState | np.random.Generator,
    outer_dims: Sequence[int] = (),
) -> Any:
    """Draws a nest of arrays for a nest of specs.

    Args:
      structure: A nest of specs of numbers or booleans. Values of specs without bounds
        are drawn from the whole range of the dtype.
      rng: A NumPy `RandomState` or `Generator`; equal states give equal samples.
      outer_dims: Dimensions to put before each spec's shape.

    Raises:
      TypeError: If a spec's dtype cannot be sampled, such as strings.
    """

    def sample(spec: ArraySpec) -> np.ndarray:
        bounded = BoundedArraySpec.from_spec(spec)
        return _sample(bounded, rng, tuple(outer_dims) + bounded.shape)

    return tree.map_structure(sample, structure)


def bounded_actions(spec: Any) -> Any:
    """Returns specs to draw actions from, which are bounded where an action is not.

    Random numbers from the whole range of a floating dtype are of size 1e38, which no
    environment can compute with. So an action without bounds is drawn from [-1, 1], and
    one with a single bound from the unit interval next to it.

    Args:
      spec: A nest of specs of numbers or booleans.

    Raises:
      TypeError: If a spec's dtype has no order, such as strings.
    """

    def bounded(leaf: ArraySpec) -> BoundedArraySpec:
        found = BoundedArraySpec.from_spec(leaf)
        if not is_continuous(found):
            return found
        minimum, maximum = bounds.near_zero(found.minimum, found.maximum, found.dtype)
        return found.replace(minimum=minimum, maximum=maximum)

    return tree.map_structure(bounded, spec)


def check_arrays_nest(arrays: Any, spec: Any) -> bool:
    """Whether a nest of arrays conforms to a nest of specs."""
    try:
        assert_arrays_spec_nest(arrays, spec)
    except (TypeError, ValueError):
        return False
    return True


def assert_arrays_spec_nest(arrays: Any, spec: Any) -> None:
    """Raises an error unless a nest of arrays conforms to a nest of specs.

    Raises:
      TypeError: If the nests differ in their types, or `spec` holds anything but
        `ArraySpec`s.
      ValueError: If the nests differ in structure, or an array does not match its spec.
    """
    tree.assert_same_structure(arrays, spec)

    def check(path: tuple[Any, ...], array: Any, leaf: Any) -> None:
        where = "/".join(map(str, path)) or "the array"
        if not isinstance(leaf, ArraySpec):
            raise TypeError(
                f"{where}: got {leaf!r} of type {type(leaf).__name__} for its spec, "
                "expected an ArraySpec; convert tensor specs with "
                "tensor_spec.to_array_spec."
            )
        if not leaf.check_array(array):
            raise ValueError(
                f"{where}: the value {_describe(array)} does not match spec: {leaf}; "
                "give an array of that shape and dtype, within the bounds if any."
            )

    tree.map_structure_with_path(check, arrays, spec)


def add_outer_dims_nest(structure: Any, outer_dims: Sequence[int]) -> Any:
    """Returns the nest of specs with `outer_dims` put before each spec's shape."""
    return tree.map_structure(
        lambda spec: spec.replace(shape=tuple(outer_dims) + spec.shape), structure
    )


def _as_shape(shape: Iterable[Any]) -> tuple[Any, ...]:
    try:
        return tuple(None if dim is None else operator.index(dim) for dim in shape)
    except TypeError as error:
        raise TypeError(
            f"shape: got {shape!r}, expected an iterable of integers; write (3,) for a "
            "vector of three and () for a scalar."
        ) from error


def _sample_integers(
    spec: BoundedArraySpec,
    rng: np.random.RandomState | np.random.Generator,
    shape: tuple[int, ...],
) -> Any:
    dtype = np.dtype(np.int8) if spec.dtype == np.bool_ else spec.dtype
    low, high = spec.minimum.astype(dtype), spec.maximum.astype(dtype)
    if isinstance(rng, np.random.Generator):
        return rng.integers(low, high, shape, dtype=dtype.type, endpoint=True)
    # Python's integers can hold the exclusive end even if the dtype cannot.
    end = high.astype(object) + 1
    if low.size == 1 and high.size == 1:
        low, end = low.item(), high.item() + 1
    return rng.randint(low, end, shape, dtype=dtype.type)


def _describe(value: Any) -> str:
    if not isinstance(value, np.ndarray | np.generic):
        return f"{value!r} of type {type(value).__name__}"
    head = f"of shape {value.shape} and dtype {value.dtype}"
    return f"{value!r} {head}" if math.prod(value.shape) <= 16 else head
