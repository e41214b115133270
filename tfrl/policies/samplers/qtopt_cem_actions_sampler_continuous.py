"""Samples continuous actions from normal distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies.samplers import qtopt_cem_actions_sampler
from tfrl.typing import types

_ANY_RANK = range(100)


class GaussianActionsSampler(qtopt_cem_actions_sampler.ActionsSampler):
    """Samples a nest of continuous vectors, which clippers see before the bounds do."""

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[Any] | None = None,
        sample_rejecters: Any = None,
        max_rejection_iterations: int = 10,
        support_integer: bool = False,
    ) -> None:
        """Checks the spec.

        Args:
          action_spec: A nest of bounded float specs, vectors or scalars.
          sample_clippers: See `ActionsSampler`.
          sample_rejecters: See `ActionsSampler`.
          max_rejection_iterations: See `ActionsSampler`.
          support_integer: Whether integers, which are truncated, and actions of any
            rank are allowed.

        Raises:
          ValueError: An action is an integer, or has a rank above 1.
        """
        flat = tf.nest.flatten(action_spec)
        if not support_integer and any(spec.dtype.is_integer for spec in flat):
            raise ValueError(
                "Only continuous action is supported by this sampler, got action_spec "
                f"{action_spec}; use the sampler of the module "
                "qtopt_cem_actions_sampler_hybrid, or support_integer=True."
            )
        super().__init__(
            action_spec,
            sample_clippers,
            sample_rejecters,
            max_rejection_iterations,
            _ANY_RANK if support_integer else (0, 1),
        )

    def _draw(self, samples: Any, state: Any) -> Any:
        return self._cast(self._bounded(self._clip(samples, state)))
