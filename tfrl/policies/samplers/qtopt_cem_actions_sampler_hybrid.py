"""Samples continuous and discrete vectors from normal distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl.policies.samplers import qtopt_cem_actions_sampler
from tfrl.typing import types


class GaussianActionsSampler(qtopt_cem_actions_sampler.ActionsSampler):
    """Samples a nest of vectors, truncating integers; clippers see bounded samples."""

    def __init__(
        self,
        action_spec: types.NestedTensorSpec,
        sample_clippers: Sequence[Any] | None = None,
    ) -> None:
        """Checks the spec; see `ActionsSampler` for the arguments."""
        super().__init__(action_spec, sample_clippers)

    def _draw(self, samples: Any, state: Any) -> Any:
        return self._clip(self._bounded(self._cast(samples)), state)
