"""`ActionsSampler`, and the functions that change or reject its samples.

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
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


class SampleClipper(abc.ABC):
    """Moves sampled actions to where constraints allow them."""

    @abc.abstractmethod
    def __call__(self, actions: Any, state: Any) -> Any:
        """Returns the nest of clipped actions, `[B, N, A]`.

        Args:
          actions: A nest of samples, `[B, N, A]`.
          state: The observations, `[B, ...]`.
        """


class SampleRejecter(abc.ABC):
    """Says which sampled actions constraints allow."""

    @abc.abstractmethod
    def __call__(self, actions: Any, state: Any) -> tf.Tensor:
        """Returns bools, `[B, N]`; False for samples that are drawn again.

        Args:
          actions: A nest of samples, `[B, N, A]`.
          state: The observations, `[B, ...]`.
        """


class ActionsSampler:
    """Draws actions from a distribution, and refits it to the best of them.

    A subclass implements `_draw`, or the two public methods.
    """

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[Any] | None = None,
        sample_rejecters: Any = None,
        max_rejection_iterations: int = 10,
        ranks: Sequence[int] = (0, 1),
    ) -> None:
        """Checks the spec.

        Args:
          action_spec: A nest of bounded specs.
          sample_clippers: Functions such as a `SampleClipper`, called in turn.
          sample_rejecters: A function such as a `SampleRejecter`. Places for which all
            samples were rejected are filled with zeros.
          max_rejection_iterations: How often samples are drawn if they can be rejected.
          ranks: The ranks of actions that are allowed.

        Raises:
          ValueError: An action has another rank, or the number is not positive.
        """
        self._action_spec = tensor_spec.from_spec(action_spec)
        self._sample_clippers = sample_clippers or ()
        self._sample_rejecters = sample_rejecters
        number_checks.check_integer(
            "max_rejection_iterations",
            max_rejection_iterations,
            1,
            remedy="10 is usual",
        )
        self._max_rejection_iterations = max_rejection_iterations
        flat = tf.nest.flatten(self._action_spec)
        if any(spec.shape.rank not in ranks for spec in flat):
            raise ValueError(
                "Only 1d action is supported by this sampler, got action_spec "
                f"{action_spec}; split an action of another rank into vectors."
            )

    def refit_distribution_to(
        self, target_sample_indices: tf.Tensor, samples: types.NestedTensor
    ) -> tuple[types.NestedTensor, types.NestedTensor]:
        """Returns the mean and the variance of the best samples, nests of `[B, A]`.

        Args:
          target_sample_indices: The places of the best samples, `[B, M]`.
          samples: A nest of float32 samples, `[B, N, A]`.
        """
        flat = [
            tf.nn.moments(tf.gather(x, target_sample_indices, batch_dims=1), axes=1)
            for x in tf.nest.flatten(samples)
        ]
        mean, var = zip(*flat, strict=True)
        return (
            tf.nest.pack_sequence_as(samples, mean),
            tf.nest.pack_sequence_as(samples, var),
        )

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
        if seed is None:
            seed = tf.random.uniform([2], maxval=tf.int64.max, dtype=tf.int64)

        def draw(own: tf.Tensor) -> Any:
            return self._draw(_gaussian(num_samples, mean, var, own), state)

        if self._sample_rejecters is None:
            return draw(seeds.as_seed(seed))
        return self._accepted(num_samples, draw, state, seeds.as_seed(seed))

    def _accepted(
        self, num_samples: int, draw: Callable[..., Any], state: Any, seed: tf.Tensor
    ) -> Any:
        """Draws again and again; returns the first samples of each row to be accepted.

        The places of too few are filled with zeros.
        """
        number, rejecter = self._max_rejection_iterations, self._sample_rejecters
        each = tf.random.split(seed, number, seeds.ALGORITHM)

        def body(i: tf.Tensor, kept: Any, is_kept: tf.Tensor) -> Any:
            drawn = draw(each[i])
            both = tf.concat([is_kept, tf.cast(rejecter(drawn, state), tf.bool)], 1)
            # A stable sort of the accepted to the front keeps the order of the draws.
            order = tf.argsort(tf.cast(~both, tf.int32), axis=1, stable=True)
            first = order[:, :num_samples]
            is_kept = tf.gather(both, first, batch_dims=1)

            def among(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
                x = tf.gather(tf.concat([old, new], 1), first, batch_dims=1)
                return tf.where(is_kept[..., tf.newaxis], x, tf.zeros_like(x))

            return i + 1, tf.nest.map_structure(among, kept, drawn), is_kept

        kept = tf.nest.map_structure(tf.zeros_like, draw(each[0]))
        is_kept = tf.zeros_like(rejecter(kept, state), tf.bool)
        start = (tf.constant(0), kept, is_kept)
        return tf.while_loop(lambda i, *_: i < number, body, start)[1]

    def _draw(self, samples: Any, state: Any) -> Any:
        """Returns actions in the spec's dtypes, from normal samples `[B, N, A]`."""
        raise NotImplementedError(type(self))

    def _clip(self, samples: Any, state: Any) -> Any:
        """Returns samples that the functions have clipped."""
        for clipper in self._sample_clippers:
            samples = clipper(samples, state)
        return samples

    def _bounded(self, samples: Any) -> Any:
        """Returns samples inside the bounds, in their own dtypes."""

        def clip(x: tf.Tensor, spec: Any) -> tf.Tensor:
            low, high = (tf.cast(y, x.dtype) for y in (spec.minimum, spec.maximum))
            return tf.clip_by_value(x, low, high)

        return tf.nest.map_structure(clip, samples, self._action_spec)

    def _cast(self, samples: Any) -> Any:
        """Returns samples in the spec's dtypes; integers are truncated."""
        return tf.nest.map_structure(
            lambda x, spec: tf.cast(x, spec.dtype), samples, self._action_spec
        )

    def is_pure_tensorflow(self) -> bool:
        """Whether the sampler may be traced: if it runs no function of the user."""
        is_ours = type(self).__module__.startswith("tfrl.")
        return is_ours and not (self._sample_clippers or self._sample_rejecters)


def folded(function: Callable[[tf.Tensor], Any], seed: tf.Tensor) -> Any:
    """Returns a nest of tensors of a seed: constants if the seed is one."""
    constant = tf.get_static_value(seed)
    if constant is None:
        return function(seed)
    with tf.init_scope():
        made = function(tf.constant(constant))
        return tf.nest.map_structure(lambda x: x.numpy(), made)


def _gaussian(num_samples: int, mean: Any, var: Any, seed: tf.Tensor) -> Any:
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
