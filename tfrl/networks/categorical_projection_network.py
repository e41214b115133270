"""CategoricalProjectionNetwork: maps a hidden state to a distribution of integers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from typing_extensions import override

from tfrl.networks import network, utils
from tfrl.networks.construction import seeding
from tfrl.specs import distribution_spec, matching, tensor_spec
from tfrl.typing import types


class CategoricalProjectionNetwork(network.DistributionNetwork):
    """Predicts the logits of a `tfp.distributions.Categorical` over `sample_spec`.

    The distribution has the dtype of the spec. If the minimum of the spec is not 0, the
    distribution is a `ShiftedCategorical`. Dimensions may have different numbers of
    actions, as in Gymnasium's `MultiDiscrete`. Every dimension then has as many logits
    as the largest one, and the logits beyond its own actions have the lowest finite
    value.
    """

    def __init__(
        self,
        sample_spec: types.TensorSpec,
        logits_init_output_factor: float = 0.1,
        name: str | None = "CategoricalProjectionNetwork",
        *,
        seed: int | None = None,
        kernel_initializer: Any = None,
    ):
        """Makes the layer that computes the logits.

        Args:
          sample_spec: The bounded integer spec of the actions.
          logits_init_output_factor: The scale of the `VarianceScaling` of the kernel.
          name: The network's name.
          seed: Seeds the kernel; None follows `tf.random.set_seed`.
          kernel_initializer: The initialiser of the kernel, instead of the
            `VarianceScaling`.

        Raises:
          ValueError: If `sample_spec` is another kind of spec.
        """
        numbers = _check_spec(sample_spec)
        num_actions = int(numbers.max())
        self._numbers = numbers
        self._output_shape = (*sample_spec.shape, num_actions)
        # Marks the logits that belong to actions; None if all do.
        self._valid = None
        if numbers.min() < num_actions:
            self._valid = np.arange(num_actions) < numbers[..., np.newaxis]
        super().__init__(
            input_tensor_spec=None,
            state_spec=(),
            output_spec=_distribution_spec(sample_spec, self._output_shape),
            name=name,
        )
        self._projection_layer = keras.layers.Dense(
            int(np.prod(self._output_shape)),
            kernel_initializer=seeding.clone_initializer(
                kernel_initializer
                or keras.initializers.VarianceScaling(logits_init_output_factor),
                seeding.SeedStream(seed)(),
            ),
            name="logits",
        )

    @override
    def call(
        self,
        inputs: tf.Tensor,
        outer_rank: int = 1,
        training: bool = False,
        mask: tf.Tensor | None = None,
    ) -> tuple[Any, tuple[()]]:
        """Returns the distribution, and `()` as the state.

        Args:
          inputs: The hidden state, `outer_shape + [n]`.
          outer_rank: The number of outer dimensions of `inputs`.
          training: Not used.
          mask: The mask of valid actions. A mask `outer_shape + [num_actions]` applies
            to all dimensions of an action. A mask `outer_shape + sample_spec.shape +
            [num_actions]` has a part for each dimension. A mask `outer_shape + [total]`
            joins the masks of all dimensions, each as long as the dimension's number of
            actions, as in sb3-contrib. Invalid actions get the lowest finite logit.

        Raises:
          ValueError: If `mask` has another shape.
        """
        squash = utils.BatchSquash(outer_rank)
        inputs = utils.flatten_inner(squash.flatten(inputs))
        if inputs.dtype != tf.float32:
            inputs = tf.cast(inputs, tf.float32)
        logits = self._projection_layer(inputs)
        if len(self._output_shape) > 1:
            logits = tf.reshape(logits, [-1, *self._output_shape])
        logits = squash.unflatten(logits)
        if self._valid is not None:
            logits = tf.where(self._valid, logits, logits.dtype.min)
        if mask is not None:
            mask = self._mask_of_logits(tf.cast(mask, tf.bool), logits)
            logits = tf.where(mask, logits, logits.dtype.min)
        return self.output_spec.build_distribution(logits=logits), ()

    def _mask_of_logits(self, mask: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the mask with as many dimensions as the logits."""
        *dimensions, num_actions = self._output_shape
        given, total = mask.shape, int(self._numbers.sum())
        if given[-1] == total != num_actions:
            ends = np.cumsum(self._numbers).reshape(self._numbers.shape)
            index = (ends - self._numbers)[..., np.newaxis] + np.arange(num_actions)
            # Beyond a dimension's own actions no logit is valid, so any entry is right
            # there.
            mask = tf.gather(
                mask, np.minimum(index, ends[..., np.newaxis] - 1), axis=-1
            )
        for _ in range(logits.shape.rank - mask.shape.rank):
            mask = tf.expand_dims(mask, -2)
        allowed = [*({None, 1, size} for size in dimensions), {None, num_actions}]
        inner = mask.shape[-len(allowed) :]
        if mask.shape.rank != logits.shape.rank or not all(
            size in matching for size, matching in zip(inner, allowed, strict=True)
        ):
            raise ValueError(
                f"mask: got shape {given}, expected [..., {num_actions}] for all "
                f"dimensions of an action, {['...', *self._output_shape]} for each, or "
                f"[..., {total}], the masks of the dimensions one after the other."
            )
        return mask


def _check_spec(spec: Any) -> np.ndarray:
    """Returns the numbers of actions, in the shape of the spec."""
    if not (tensor_spec.is_bounded(spec) and tensor_spec.is_discrete(spec)):
        raise ValueError(
            f"sample_spec: got {spec}, but sample_spec "
            "must be bounded and must be discrete; use a NormalProjectionNetwork for "
            "continuous actions."
        )
    matching.check_not_empty(spec, "sample_spec")
    numbers = np.asarray(spec.maximum, np.int64) - spec.minimum + 1
    return np.broadcast_to(numbers, spec.shape)


def _distribution_spec(spec: Any, logits_shape: tuple[int, ...]) -> Any:
    def build(logits: tf.Tensor) -> Any:
        from tfrl.distributions import shifted_categorical

        return shifted_categorical.over(spec, logits=logits)

    return distribution_spec.DistributionSpec(
        build, {"logits": tf.TensorSpec(logits_shape, tf.float32)}, sample_spec=spec
    )
