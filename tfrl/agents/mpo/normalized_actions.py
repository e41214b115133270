"""Actions as vectors of numbers with the bounds -1 and 1, for MPO's losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.typing import types
from tfrl.utils import actions as actions_lib


class NormalizedActions:
    """Converts nests of actions to vectors `[..., D]`, and back.

    KL divergences and the gradients of log-densities do not change with the units of
    the actions, but the penalty of actions outside of their bounds does.
    """

    def __init__(self, action_spec: types.NestedTensorSpec) -> None:
        """Stores the bounds.

        Args:
          action_spec: A nest of bounded float specs with `D` numbers in total.
        """
        self._spec = action_spec
        self._flat_specs = tf.nest.flatten(action_spec)
        means, magnitudes = actions_lib.spec_means_and_magnitudes(action_spec)
        self._means = self._vector(means)
        self._magnitudes = self._vector(magnitudes)

    @property
    def num_dimensions(self) -> int:
        """The number `D`."""
        return len(self._means)

    def normal(self, distributions: types.NestedDistribution) -> types.Distribution:
        """Joins a nest of normal distributions of actions into one `Normal` `[B, D]`.

        Args:
          distributions: A nest of distributions, with the structure of the action
            specs. The numbers in each action are independent.
        """
        import tensorflow_probability as tfp

        flat = tf.nest.flatten(distributions)
        mean = self._joined([distribution.mean() for distribution in flat])
        stddev = self._joined([distribution.stddev() for distribution in flat])
        return tfp.distributions.Normal(
            (mean - self._means) / self._magnitudes, stddev / self._magnitudes
        )

    def clipped_actions(self, vectors: tf.Tensor) -> Any:
        """Returns the nest of actions `[B, ...]` nearest to vectors `[B, D]`."""
        numbers = self._means + self._magnitudes * tf.clip_by_value(vectors, -1.0, 1.0)
        sizes = [spec.shape.num_elements() for spec in self._flat_specs]
        parts = [
            tf.cast(tf.reshape(part, [-1, *spec.shape]), spec.dtype)
            for part, spec in zip(
                tf.split(numbers, sizes, axis=-1), self._flat_specs, strict=True
            )
        ]
        return tf.nest.pack_sequence_as(self._spec, parts)

    def _joined(self, parts: list[tf.Tensor]) -> tf.Tensor:
        return tf.concat(
            [
                tf.cast(tf.reshape(part, [-1, spec.shape.num_elements()]), tf.float32)
                for part, spec in zip(parts, self._flat_specs, strict=True)
            ],
            axis=-1,
        )

    def _vector(self, numbers: Any) -> np.ndarray:
        return np.concatenate(
            [
                np.broadcast_to(number, spec.shape).astype(np.float32).ravel()
                for number, spec in zip(
                    tf.nest.flatten(numbers), self._flat_specs, strict=True
                )
            ]
        )
