"""Samples continuous and discrete vectors from normal distributions."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfrl.policies.samplers import qtopt_cem_actions_sampler as sampling
from tfrl.typing import types


class GaussianActionsSampler(sampling.ActionsSampler):
    """Samples a nest of vectors, truncating those of integers.

    See `ActionsSampler` for the shapes.
    """

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[sampling.Clipper] | None = None,
    ) -> None:
        """Checks the spec.

        Args:
          action_spec: A nest of bounded specs, vectors or scalars.
          sample_clippers: Functions that change samples, in turn, after they are
            clipped to the bounds.

        Raises:
          ValueError: An action has a rank above 1.
        """
        super().__init__(action_spec, sample_clippers)
        sampling.check_vectors(self._action_spec, (0, 1))

    def refit_distribution_to(
        self, target_sample_indices: tf.Tensor, samples: types.NestedTensor
    ) -> tuple[types.NestedTensor, types.NestedTensor]:
        """Returns the mean and the variance of the best samples, nests of `[B, A]`."""
        return sampling.moments(target_sample_indices, samples)

    def sample_batch_and_clip(
        self,
        num_samples: int,
        mean: types.NestedTensor,
        var: types.NestedTensor,
        state: types.NestedTensor = None,
        *,
        seed: tf.Tensor | None = None,
    ) -> types.NestedTensor:
        """Returns a nest of actions `[B, N, A]`; see `ActionsSampler`."""
        drawn = sampling.gaussian(num_samples, mean, var, sampling.as_seed(seed))
        samples = sampling.clip_to_spec(
            sampling.cast_to_spec(drawn, self._action_spec), self._action_spec
        )
        for clipper in self._sample_clippers or ():
            samples = clipper(samples, state)
        return samples

    def is_pure_tensorflow(self) -> bool:
        """Whether the sampler may be traced: if it runs no function of the user."""
        return not self._sample_clippers
