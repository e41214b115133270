"""The bounded tensor spec, a `tf.TensorSpec` with least and greatest values.

TensorFlow has such a class too, but not in its public API. The class here is a plain
subclass of `tf.TensorSpec`. So signatures, datasets and SavedModels accept it as a
`tf.TensorSpec`, and loading such a SavedModel only needs TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.specs import array_spec


class BoundedTensorSpec(tf.TensorSpec):
    """A `tf.TensorSpec` with inclusive bounds, like `array_spec.BoundedArraySpec`.

    Equality compares the names too, as in `tf.TensorSpec`, but unlike in array specs.
    """

    __slots__ = ("_maximum", "_minimum")

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        minimum: Any = None,
        maximum: Any = None,
        name: str | None = None,
    ):
        """Describes a bounded tensor.

        Args:
          shape: A shape, or any argument of `tf.TensorShape`.
          dtype: An integer, floating or boolean dtype.
          minimum: The least values, broadcastable to `shape`; None for the dtype's
            least value. An infinite bound of a floating dtype becomes its largest
            finite number.
          maximum: The greatest values, in the same form.
          name: A name for messages; also the argument's name in signatures.

        Raises:
          ValueError: If a bound does not broadcast to `shape`, is NaN, or lies outside
            of what `dtype` can hold, or if a minimum is above its maximum.
          TypeError: If `shape` is not a shape, `dtype` is not a dtype, or the dtype has
            no order.
        """
        super().__init__(shape, dtype, name)
        bounds = array_spec.BoundedArraySpec(self.shape, self.dtype, minimum, maximum)
        self._minimum = bounds.minimum
        self._maximum = bounds.maximum

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """Returns a bounded spec like `spec`; missing bounds are its dtype's limits."""
        return cls(
            spec.shape,
            spec.dtype,
            getattr(spec, "minimum", None),
            getattr(spec, "maximum", None),
            name or spec.name,
        )

    @property
    def minimum(self) -> np.ndarray:
        """The least values, inclusive: a read-only array broadcastable to `shape`."""
        return self._minimum

    @property
    def maximum(self) -> np.ndarray:
        """The greatest values, inclusive: read-only, broadcastable to `shape`."""
        return self._maximum

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """Returns the most specific spec that covers this spec and `others`.

        The result is this spec if all are equal, else a spec without bounds; None if no
        spec covers all of them. TensorFlow calls this method when it joins tensors from
        two branches.
        """
        if all(self == other for other in others):
            return self
        if not all(isinstance(other, tf.TensorSpec) for other in others):
            return None
        first, *rest = (
            tf.TensorSpec(s.shape, s.dtype, s.name) for s in (self, *others)
        )
        return first.most_specific_common_supertype(rest)

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self.shape}, dtype={self.dtype!r}, "
            f"name={self.name!r}, minimum={self.minimum!r}, maximum={self.maximum!r})"
        )

    def __eq__(self, other: object) -> bool:
        return bool(
            super().__eq__(other)
            and np.all(self.minimum == other.minimum)  # type: ignore[attr-defined]
            and np.all(self.maximum == other.maximum)  # type: ignore[attr-defined]
        )

    # Bounds may broadcast in different ways and be equal, so they stay out of the hash.
    __hash__ = tf.TensorSpec.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedTensorSpec, self._serialize()

    def _serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments, as TensorFlow's `TypeSpec` requires."""
        return self.shape, self.dtype, self.minimum, self.maximum, self.name
