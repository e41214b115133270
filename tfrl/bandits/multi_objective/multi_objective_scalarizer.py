"""Scalarizers, which make one reward of several objectives."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf


class Scalarizer(tf.Module, abc.ABC):
    """Maps objectives `[B, M]` to rewards `[B]`; a subclass writes `_scalarize`.

    Its parameters are those of the constructor, `[M]`, or those that `set_parameters`
    sets for each row, `[B, M]`. A loop that is traced already keeps what it had.
    """

    def __init__(self, num_of_objectives: int) -> None:
        """Stores the number of objectives, M.

        Raises:
          ValueError: It is no integer from 2 on.
        """
        super().__init__()
        if not isinstance(num_of_objectives, int) or num_of_objectives < 2:
            raise ValueError(
                f"num_of_objectives: got {num_of_objectives!r}, expected an integer "
                "from 2 on; a single objective needs no scalarizer."
            )
        self._num_of_objectives = num_of_objectives
        self._num_rows: int | None = None  # Of parameters for each row.

    def __call__(self, multi_objectives: tf.Tensor) -> tf.Tensor:
        """Returns the rewards `[B]` of objectives `[B, M]`.

        Raises:
          ValueError: The shape is another.
        """
        multi_objectives = tf.convert_to_tensor(multi_objectives)
        shape = multi_objectives.shape
        if shape.rank != 2 or shape[1] != self._num_of_objectives:
            raise ValueError(
                f"multi_objectives: got shape {shape}, expected [B, "
                f"{self._num_of_objectives}]; give a column for each objective."
            )
        if None not in (self._num_rows, shape[0]) and shape[0] != self._num_rows:
            raise ValueError(
                f"multi_objectives: got {shape[0]} rows, expected {self._num_rows}, "
                "the number in set_parameters; call it for these rows."
            )
        return self._scalarize(self._transform(multi_objectives))

    def _transform(self, multi_objectives: tf.Tensor) -> tf.Tensor:
        """Returns the objectives as `_scalarize` takes them; the same by default."""
        return multi_objectives

    @abc.abstractmethod
    def _scalarize(self, transformed_multi_objectives: tf.Tensor) -> tf.Tensor:
        """Returns the rewards `[B]` of transformed objectives `[B, M]`."""

    @abc.abstractmethod
    def set_parameters(self, **kwargs: Any) -> None:
        """Sets the parameters of each row, `[B, M]`."""

    def _checked(self, **parameters: Any) -> list[tf.Tensor]:
        """Returns parameters `[B, M]` as tensors; refuses other shapes."""
        found = []
        for name, value in parameters.items():
            tensor = tf.convert_to_tensor(value, tf.float32)
            if tensor.shape.rank != 2 or tensor.shape[1] != self._num_of_objectives:
                raise ValueError(
                    f"{name}: got shape {tensor.shape}, expected [B, "
                    f"{self._num_of_objectives}]; give a row for each row of the batch."
                )
            found.append(tensor)
            self._num_rows = tensor.shape[0]
        return found


class LinearScalarizer(Scalarizer):
    """The sum of weighted objectives."""

    def __init__(
        self,
        weights: Sequence[float],
        multi_objective_transform: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> None:
        """Stores the weights.

        Args:
          weights: The weights, `[M]`.
          multi_objective_transform: A function of the objectives to apply before, or
            None.
        """
        super().__init__(len(weights))
        self._weights = tf.constant(weights, tf.float32)
        self._transformer = multi_objective_transform or tf.identity

    def _transform(self, multi_objectives: tf.Tensor) -> tf.Tensor:
        return self._transformer(multi_objectives)

    def _scalarize(self, transformed_multi_objectives: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(transformed_multi_objectives * self._weights, axis=1)

    def set_parameters(self, weights: Any) -> None:  # type: ignore[override]
        """Sets the weights of each row, `[B, M]`.

        Raises:
          ValueError: The shape is another.
        """
        (self._weights,) = self._checked(weights=weights)


class ChebyshevScalarizer(Scalarizer):
    """`min_m w_m (r_m - z_m)`, with a reference point z that all rewards are above."""

    def __init__(
        self, weights: Sequence[float], reference_point: Sequence[float]
    ) -> None:
        """Stores the weights w and the reference point z, `[M]`.

        Raises:
          ValueError: Their sizes differ.
        """
        _check_sizes("reference_point", reference_point, "weights", weights)
        super().__init__(len(weights))
        self._weights = tf.constant(weights, tf.float32)
        self._reference_point = tf.constant(reference_point, tf.float32)

    def _scalarize(self, transformed_multi_objectives: tf.Tensor) -> tf.Tensor:
        above = transformed_multi_objectives - self._reference_point
        return tf.reduce_min(above * self._weights, axis=1)

    def set_parameters(  # type: ignore[override]
        self, weights: Any, reference_point: Any
    ) -> None:
        """Sets the weights and the reference points of each row, `[B, M]`.

        Raises:
          ValueError: A shape is another.
        """
        self._weights, self._reference_point = self._checked(
            weights=weights, reference_point=reference_point
        )


class _Params(NamedTuple):
    slope: float
    offset: float


class HyperVolumeScalarizer(Scalarizer):
    """`min over m with v_m > 0 of max(a_m r_m + b_m, 0) / v_m`, with a unit vector v.

    Random directions v make it unbiased for the hypervolume (Zhang and Golovin, "Random
    hypervolume scalarizations for provable multi-objective black box optimization",
    2020, arXiv:2006.04655).
    """

    DIRECTION_KEY = "direction"
    SLOPE_KEY = "slope"
    OFFSET_KEY = "offset"
    PARAMS: ClassVar[Any] = _Params
    ALMOST_ZERO = 1e-16

    def __init__(
        self,
        direction: Sequence[float],
        transform_params: Sequence[_Params],
        multi_objective_transform: Callable[..., tf.Tensor] | None = None,
    ) -> None:
        """Stores the direction, scaled to length 1, and the slopes and offsets.

        Args:
          direction: v, `[M]`.
          transform_params: The slope a and the offset b of each objective.
          multi_objective_transform: A function of objectives, slopes and offsets;
            None for `a r + b`.

        Raises:
          ValueError: The direction is negative or 0, or the sizes differ.
        """
        v = np.asarray(direction, np.float64)
        length = np.linalg.norm(v)
        if (v < 0).any() or length < self.ALMOST_ZERO:
            raise ValueError(
                f"direction: got {list(direction)}, expected numbers from 0 on, not all"
                " of them 0; change it."
            )
        _check_sizes("transform_params", transform_params, "direction", direction)
        super().__init__(len(v))
        self._direction = tf.constant(v / length, tf.float32)
        slopes, offsets = zip(*transform_params, strict=True)
        self._slopes = tf.constant(slopes, tf.float32)
        self._offsets = tf.constant(offsets, tf.float32)
        self._transformer = multi_objective_transform or _affine

    def _transform(self, multi_objectives: tf.Tensor) -> tf.Tensor:
        return self._transformer(multi_objectives, self._slopes, self._offsets)

    def _scalarize(self, transformed_multi_objectives: tf.Tensor) -> tf.Tensor:
        counts = tf.abs(self._direction) >= self.ALMOST_ZERO
        divisor = tf.where(counts, self._direction, 1.0)
        values = tf.maximum(transformed_multi_objectives, 0) / divisor
        return tf.reduce_min(tf.where(counts, values, values.dtype.max), axis=1)

    def set_parameters(  # type: ignore[override]
        self, direction: Any, transform_params: Mapping[str, Any]
    ) -> None:
        """Sets the parameters of each row, `[B, M]`.

        Args:
          direction: The directions, which are scaled to length 1.
          transform_params: A dictionary with "slope", "offset" or both.

        Raises:
          ValueError: A shape or a key is another.
        """
        unknown = set(transform_params) - {self.SLOPE_KEY, self.OFFSET_KEY}
        if unknown:
            raise ValueError(
                f"transform_params: got the keys {sorted(unknown)}, expected "
                f"{self.SLOPE_KEY!r} and {self.OFFSET_KEY!r}; leave out the others."
            )
        (v,) = self._checked(direction=direction)
        self._direction = tf.math.l2_normalize(v, axis=1)
        if self.SLOPE_KEY in transform_params:
            (self._slopes,) = self._checked(slope=transform_params[self.SLOPE_KEY])
        if self.OFFSET_KEY in transform_params:
            (self._offsets,) = self._checked(offset=transform_params[self.OFFSET_KEY])


def _affine(x: tf.Tensor, slopes: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    return x * slopes + offsets


def _check_sizes(
    name: str, values: Sequence[Any], other: str, others: Sequence[Any]
) -> None:
    if len(values) != len(others):
        raise ValueError(
            f"{name}: got {len(values)} of them, expected {len(others)}, as many as "
            f"{other} has; give as many."
        )
