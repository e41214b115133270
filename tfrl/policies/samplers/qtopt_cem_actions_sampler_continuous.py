"""Samples continuous actions from normal distributions."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfrl.policies.samplers import qtopt_cem_actions_sampler as sampling
from tfrl.typing import types
from tfrl.utils import number_checks


class GaussianActionsSampler(sampling.ActionsSampler):
    """Samples a nest of continuous vectors; see `ActionsSampler` for the shapes."""

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[sampling.Clipper] | None = None,
        sample_rejecters: sampling.Rejecter | None = None,
        max_rejection_iterations: int = 10,
        support_integer: bool = False,
    ) -> None:
        """Checks the spec.

        Args:
          action_spec: A nest of bounded float specs, vectors or scalars.
          sample_clippers: Functions that change samples, in turn, before they are
            clipped to the bounds.
          sample_rejecters: One function that says which samples are allowed. The others
            are drawn again; places that stay empty are filled with zeros.
          max_rejection_iterations: How often samples are drawn then.
          support_integer: Whether integers and actions of any rank are allowed;
            integers are truncated.

        Raises:
          ValueError: An action is an integer, or has a rank above 1.
        """
        super().__init__(action_spec, sample_clippers, sample_rejecters)
        number_checks.check_integer(
            "max_rejection_iterations",
            max_rejection_iterations,
            1,
            remedy="10 is TF-Agents' number",
        )
        self._max_rejection_iterations = max_rejection_iterations
        if support_integer:
            return
        if any(spec.dtype.is_integer for spec in tf.nest.flatten(self._action_spec)):
            raise ValueError(
                "Only continuous action is supported by this sampler, got action_spec "
                f"{action_spec}; use the sampler of the module "
                "qtopt_cem_actions_sampler_hybrid, or support_integer=True."
            )
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

        def draw(own: tf.Tensor) -> types.NestedTensor:
            samples = sampling.gaussian(num_samples, mean, var, own)
            for clipper in self._sample_clippers or ():
                samples = clipper(samples, state)
            return sampling.clip_to_spec(samples, self._action_spec)

        seed = sampling.as_seed(seed)
        rejecter = self._sample_rejecters
        if rejecter is None:
            samples = draw(seed)
        else:
            samples = sampling.accepted(
                draw,
                lambda drawn: rejecter(drawn, state),
                tf.nest.map_structure(tf.zeros_like, draw(seed)),
                self._max_rejection_iterations,
                seed,
            )
        return sampling.cast_to_spec(samples, self._action_spec)

    def is_pure_tensorflow(self) -> bool:
        """Whether the sampler may be traced: if it runs no function of the user."""
        return not (self._sample_clippers or self._sample_rejecters)
