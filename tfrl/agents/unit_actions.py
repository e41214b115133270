"""Actions as vectors of numbers from -1 to 1, or as shares of a choice.

MR.Q and DreamerV3 treat both kinds alike: their models take vectors. For one discrete
action a vector is one-hot, or the shares of a Gumbel softmax (Jang et al., "Categorical
reparameterization with Gumbel-softmax", 2017, arXiv:1611.01144).
"""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from tfrl.specs import matching, tensor_spec
from tfrl.typing import types
from tfrl.utils import actions as actions_lib
from tfrl.utils.random_numbers import seeds

# Of the Gumbel softmax; so high that the shares differ little.
_TEMPERATURE = 10.0


class UnitActions(abc.ABC):
    """Converts actions to vectors, and outputs of an actor to actions.

    Attributes:
      spec: The spec of the action.
      size: The number `A` of numbers in a vector.
      noise_unit: The unit of noise: half the width of the numbers' range.
    """

    noise_unit: float

    def __init__(self, spec: Any, size: int) -> None:
        """Stores the spec and the size."""
        self.spec, self.size = spec, size

    @abc.abstractmethod
    def vectors(self, action: tf.Tensor) -> tf.Tensor:
        """Returns actions `[..., *spec.shape]` as vectors `[..., A]`."""

    @abc.abstractmethod
    def activated(self, outputs: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of an actor's outputs `[B, A]`, with gradients."""

    @abc.abstractmethod
    def greedy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of the best actions for an actor's outputs `[B, A]`."""

    @abc.abstractmethod
    def possible(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the vectors of possible actions nearest to vectors `[B, A]`."""

    @abc.abstractmethod
    def actions(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the possible actions nearest to vectors `[B, A]`, of the spec."""

    @abc.abstractmethod
    def acting(self, outputs: tf.Tensor) -> Any:
        """Returns actions of the spec, or their distribution, for outputs `[B, A]`."""

    def smoothed(
        self,
        outputs: tf.Tensor,
        seed: tf.Tensor,
        stddev: Any,
        limit: float | None = None,
    ) -> tf.Tensor:
        """Returns the vectors of possible actions near an actor's, with noise.

        Args:
          outputs: The actor's outputs, `[B, A]`.
          seed: The seed of the random numbers.
          stddev: The standard deviation of the noise, in `noise_unit`s.
          limit: The largest absolute value of the noise, in `noise_unit`s; None for no
            limit.
        """
        own, noise_seed = seeds.split_seed(seed, 2)
        noise = tf.cast(stddev, tf.float32) * seeds.normal(
            noise_seed, tf.shape(outputs)
        )
        if limit is not None:
            noise = tf.clip_by_value(noise, -limit, limit)
        return self.possible(self.activated(outputs, own) + self.noise_unit * noise)


class Vector(UnitActions):
    """Bounded floats."""

    noise_unit = 1.0

    def __init__(self, spec: Any) -> None:
        """Stores the bounds.

        Args:
          spec: The bounded spec of floats.
        """
        super().__init__(spec, spec.shape.num_elements())
        self._mean, self._magnitude = actions_lib.spec_means_and_magnitudes(spec)

    def vectors(self, action: tf.Tensor) -> tf.Tensor:
        """Returns the actions scaled to [-1, 1]; see `UnitActions`."""
        outer = tf.shape(action)[: action.shape.rank - self.spec.shape.rank]
        scaled = (tf.cast(action, tf.float32) - self._mean) / self._magnitude
        return tf.reshape(scaled, tf.concat([outer, [self.size]], axis=0))

    def activated(self, outputs: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns `tanh` of the outputs; see `UnitActions`."""
        del seed
        return tf.tanh(outputs)

    def greedy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns `tanh` of the outputs; see `UnitActions`."""
        return tf.tanh(outputs)

    def possible(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the clipped vectors; see `UnitActions`."""
        return tf.clip_by_value(vectors, -1.0, 1.0)

    def actions(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the actions in their bounds; see `UnitActions`."""
        return actions_lib.scale_to_spec(self.possible(vectors), self.spec)

    def acting(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the actions; see `UnitActions`."""
        return actions_lib.scale_to_spec(tf.tanh(outputs), self.spec)


class Choice(UnitActions):
    """One discrete action."""

    noise_unit = 0.5

    def __init__(self, spec: Any) -> None:
        """Stores the number of values.

        Args:
          spec: The scalar bounded spec of integers.
        """
        super().__init__(spec, int(spec.maximum - spec.minimum) + 1)

    def vectors(self, action: tf.Tensor) -> tf.Tensor:
        """Returns one-hot vectors; see `UnitActions`."""
        return tf.one_hot(tf.cast(action - self.spec.minimum, tf.int32), self.size)

    def activated(self, outputs: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns the shares of a Gumbel softmax; see `UnitActions`."""
        # In (0, 1), as a logarithm needs it.
        unit = tf.maximum(seeds.uniform(seed, tf.shape(outputs)), 2.0**-24)
        gumbel = -tf.math.log(-tf.math.log(unit))
        return tf.nn.softmax((outputs + gumbel) / _TEMPERATURE)

    def greedy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns one-hot vectors of the largest outputs; see `UnitActions`."""
        return self.possible(outputs)

    def possible(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns one-hot vectors of the largest shares; see `UnitActions`."""
        return tf.one_hot(tf.argmax(vectors, axis=-1), self.size)

    def actions(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the actions of the largest shares; see `UnitActions`."""
        chosen = tf.argmax(vectors, axis=-1, output_type=tf.int32)
        return tf.cast(chosen, self.spec.dtype) + self.spec.minimum

    def acting(self, outputs: tf.Tensor) -> Any:
        """Returns the distribution with these logits; see `UnitActions`."""
        from tfrl.distributions import shifted_categorical

        return shifted_categorical.over(self.spec, logits=outputs)


def of(action_spec: types.NestedTensorSpec) -> UnitActions:
    """Returns the conversion for the spec of an action.

    Raises:
      ValueError: The spec is neither one bounded array of floats nor one bounded
        scalar of integers.
    """
    spec = tensor_spec.from_spec(action_spec)
    if not tf.nest.is_nested(spec) and tensor_spec.is_bounded(spec):
        matching.check_not_empty(spec, "action_spec")
        if tensor_spec.is_continuous(spec) and actions_lib.has_finite_range(spec):
            return Vector(spec)
        if tensor_spec.is_discrete(spec) and spec.shape.rank == 0:
            return Choice(spec)
    raise ValueError(
        f"action_spec: got {action_spec}, expected one array of floats with finite "
        "bounds, or one scalar of integers with bounds; join the parts of an action in "
        "an environment wrapper, as tfrl.MRQ and tfrl.Dreamer do."
    )
