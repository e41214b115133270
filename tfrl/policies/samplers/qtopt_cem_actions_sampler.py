"""`ActionsSampler`, and the draws that the samplers have in common.

In all shapes `B` is the batch size, `N` the number of samples, `M` the number of elites
and `A` the size of an action.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.specs import tensor_spec
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds

# Takes samples `[B, N, A]` and observations `[B, ...]`, and returns changed samples.
Clipper = Callable[[Any, Any], Any]
# Takes the same, and returns bools `[B, N]`, False for samples to draw again.
Rejecter = Callable[[Any, Any], tf.Tensor]


class ActionsSampler(abc.ABC):
    """Draws actions from a distribution, and refits it to the best of them."""

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[Any] | None = None,
        sample_rejecters: Any = None,
    ) -> None:
        """Stores the spec and the functions.

        Args:
          action_spec: A nest of bounded specs.
          sample_clippers: Functions of samples and observations that return changed
            samples; see `SampleClipper`.
          sample_rejecters: See `SampleRejecter`.
        """
        self._action_spec = tensor_spec.from_spec(action_spec)
        self._sample_clippers = sample_clippers
        self._sample_rejecters = sample_rejecters

    @abc.abstractmethod
    def refit_distribution_to(
        self, target_sample_indices: tf.Tensor, samples: types.NestedTensor
    ) -> tuple[types.NestedTensor, types.NestedTensor]:
        """Returns the mean and the variance of the best samples, nests of `[B, A]`.

        Args:
          target_sample_indices: The places of the best samples, `[B, M]`.
          samples: A nest of float32 samples, `[B, N, A]`.
        """

    @abc.abstractmethod
    def sample_batch_and_clip(
        self,
        num_samples: int,
        mean: types.NestedTensor,
        var: types.NestedTensor,
        state: types.NestedTensor = None,
        *,
        seed: tf.Tensor | None = None,
    ) -> types.NestedTensor:
        """Returns a nest of actions `[B, N, A]` inside the bounds.

        All rows of a batch get the same noise, so a row's samples do not depend on the
        other rows.

        Args:
          num_samples: The number of samples, `N`.
          mean: A nest of means, `[B, A]`.
          var: A nest of variances, `[B, A]`.
          state: The observations, `[B, ...]`.
          seed: An integer tensor `[2]`; None follows `tf.random.set_seed`.
        """

    def is_pure_tensorflow(self) -> bool:
        """Whether the sampler may be traced; see `TFPolicy._is_pure_tensorflow`."""
        return False


class SampleClipper(abc.ABC):
    """Moves sampled actions to where constraints allow them."""

    @abc.abstractmethod
    def __call__(
        self, actions: types.NestedTensor, state: types.NestedTensor
    ) -> types.NestedTensor:
        """Returns the clipped actions.

        Args:
          actions: A nest of samples, `[B, N, A]`.
          state: The observations, `[B, ...]`.
        """


class SampleRejecter(abc.ABC):
    """Says which sampled actions constraints allow."""

    @abc.abstractmethod
    def __call__(
        self, actions: types.NestedTensor, state: types.NestedTensor
    ) -> tf.Tensor:
        """Returns bools, `[B, N]`; False for samples that are drawn again.

        Args:
          actions: A nest of samples, `[B, N, A]`.
          state: The observations, `[B, ...]`.
        """


def check_vectors(action_spec: types.NestedTensorSpec, ranks: Sequence[int]) -> None:
    """Raises a ValueError unless all actions have one of the ranks.

    Args:
      action_spec: A nest of specs.
      ranks: The ranks that are allowed.
    """
    for spec in tf.nest.flatten(action_spec):
        if spec.shape.rank not in ranks:
            raise ValueError(
                "Only 1d action is supported by this sampler, got action_spec "
                f"{action_spec}; split an action of another rank into vectors."
            )


def as_seed(seed: tf.Tensor | None) -> tf.Tensor:
    """Returns the seed; for None one that follows `tf.random.set_seed`."""
    if seed is not None:
        return seeds.as_seed(seed)
    return tf.random.uniform([2], maxval=tf.int64.max, dtype=tf.int64)


def gaussian(
    num_samples: int,
    mean: types.NestedTensor,
    var: types.NestedTensor,
    seed: tf.Tensor,
) -> types.NestedTensor:
    """Returns normal samples, a nest of `[B, N, A]`, with one noise for all rows.

    The noise of a constant seed is a constant, so that exported policies need no
    operation for it.
    """
    means, variances = tf.nest.flatten(mean), tf.nest.flatten(var)

    def noise(seed: tf.Tensor) -> list[tf.Tensor]:
        number = len(means)
        each = [seed] if number == 1 else seeds.split_seed(seed, number)
        return [
            seeds.normal(own, [num_samples, *m.shape[1:]], m.dtype, batch_axis=None)
            for m, own in zip(means, each, strict=True)
        ]

    drawn = [
        m[:, tf.newaxis] + tf.sqrt(v)[:, tf.newaxis] * each
        for m, v, each in zip(means, variances, folded(noise, seed), strict=True)
    ]
    return tf.nest.pack_sequence_as(mean, drawn)


def folded(function: Callable[[tf.Tensor], Any], seed: tf.Tensor) -> Any:
    """Returns a nest of tensors of a seed: constants if the seed is one."""
    constant = tf.get_static_value(seed)
    if constant is None:
        return function(seed)
    with tf.init_scope():
        return tf.nest.map_structure(
            lambda x: x.numpy(), function(tf.constant(constant))
        )


def clip_to_spec(
    samples: types.NestedTensor, action_spec: types.NestedTensorSpec
) -> types.NestedTensor:
    """Returns samples clipped to the bounds, in their own dtypes."""
    return tf.nest.map_structure(
        lambda x, spec: tf.clip_by_value(
            x, tf.cast(spec.minimum, x.dtype), tf.cast(spec.maximum, x.dtype)
        ),
        samples,
        action_spec,
    )


def cast_to_spec(
    samples: types.NestedTensor, action_spec: types.NestedTensorSpec
) -> types.NestedTensor:
    """Returns samples in the dtypes of the specs; integers are truncated."""
    return tf.nest.map_structure(
        lambda x, spec: tf.cast(x, spec.dtype), samples, action_spec
    )


def accepted(
    draw: Callable[[tf.Tensor], types.NestedTensor],
    accepts: Callable[[types.NestedTensor], tf.Tensor],
    otherwise: types.NestedTensor,
    num_draws: int,
    seed: tf.Tensor,
) -> types.NestedTensor:
    """Draws samples again and again, and returns the first `N` accepted of each row.

    Args:
      draw: Returns a nest of samples `[B, N, ...]` for a seed.
      accepts: Returns bools `[B, N]` for samples.
      otherwise: The nest of samples that fill the places, `[B, N, ...]`, if too few
        were accepted.
      num_draws: How often to draw.
      seed: An integer tensor `[2]`.
    """
    each = tf.random.split(seed, num=num_draws, alg=seeds.ALGORITHM)

    def body(i: tf.Tensor, kept: Any, is_kept: tf.Tensor) -> Any:
        drawn = draw(each[i])
        both = tf.concat([is_kept, tf.cast(accepts(drawn), tf.bool)], axis=1)
        # A stable sort of the accepted to the front keeps the order of the draws.
        order = tf.argsort(tf.cast(~both, tf.int32), axis=1, stable=True)
        first = order[:, : is_kept.shape[1]]
        kept = tf.nest.map_structure(
            lambda old, new: tf.gather(
                tf.concat([old, new], axis=1), first, batch_dims=1
            ),
            kept,
            drawn,
        )
        return i + 1, kept, tf.gather(both, first, batch_dims=1)

    is_kept = tf.zeros(tf.shape(tf.nest.flatten(otherwise)[0])[:2], tf.bool)
    is_kept = tf.ensure_shape(is_kept, tf.nest.flatten(otherwise)[0].shape[:2])
    _, kept, is_kept = tf.while_loop(
        lambda i, *_: i < num_draws, body, (tf.constant(0), otherwise, is_kept)
    )
    return tf.nest.map_structure(
        lambda x, rest: tf.where(is_kept[..., tf.newaxis], x, rest), kept, otherwise
    )


def moments(
    indices: tf.Tensor, samples: types.NestedTensor
) -> tuple[types.NestedTensor, types.NestedTensor]:
    """Returns the mean and the variance of chosen samples, nests of `[B, A]`.

    Args:
      indices: Places of samples, `[B, M]`.
      samples: A nest of samples, `[B, N, A]`.
    """
    chosen = tf.nest.map_structure(
        lambda x: tf.gather(tf.cast(x, tf.float32), indices, batch_dims=1), samples
    )
    mean = tf.nest.map_structure(lambda x: tf.reduce_mean(x, axis=1), chosen)
    return mean, tf.nest.map_structure(
        lambda x, m: tf.reduce_mean(tf.square(x - m[:, tf.newaxis]), axis=1),
        chosen,
        mean,
    )
