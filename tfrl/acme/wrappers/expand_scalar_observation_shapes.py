"""`ExpandScalarObservationShapesWrapper` turns scalar observations into vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.specs import dm_env_specs
from tfrl.typing import types


class ExpandScalarObservationShapesWrapper(base.ObservationWrapper):
    """Gives scalars in the observations the shape `[1]`, so that they have an axis.

    Frames, such as the observations of `ObservationActionRewardWrapper`, need an axis
    along which they are stacked.
    """

    def observation_spec(self) -> Any:
        """The specs of the observations, of rank 1 or more; new ones are unbounded."""

        def expand(spec: Any) -> Any:
            if spec.shape:
                return spec
            return dm_env_specs.Array((1,), spec.dtype, spec.name)

        return tree.map_structure(expand, self._environment.observation_spec())

    def _observation(self, observation: types.NestedArray) -> types.NestedArray:
        return tree.map_structure(np.atleast_1d, observation)
