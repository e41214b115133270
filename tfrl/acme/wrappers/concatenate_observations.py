"""`ConcatObservationWrapper` joins a dict of observations to one vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.specs import dm_env_specs


class ConcatObservationWrapper(base.ObservationWrapper):
    """Concatenates the entries of a dict of observations along the first axis.

    The entries are sorted by name, and scalars become vectors of one number. The dtype
    is NumPy's common dtype of all entries. So dm_control's observations become one
    vector `[n]`. `tfrl.environments.FlattenObservationsWrapper` does the same for a
    `PyEnvironment`.
    """

    def __init__(
        self,
        environment: dm_env.Environment,
        name_filter: Sequence[str] | None = None,
    ):
        """Wraps `environment`.

        Args:
          environment: The environment, whose observations are a dict.
          name_filter: The names of the entries to keep; None keeps all.

        Raises:
          ValueError: If the observations are not a dict, or lack a name.
        """
        super().__init__(environment)
        spec = environment.observation_spec()
        names = set(spec) if isinstance(spec, Mapping) else set()
        missing = sorted(set(name_filter or ()) - names)
        if missing or not names:
            raise ValueError(
                f"name_filter: got {name_filter} for observations of {spec}, expected "
                f"a dict with these names, without {missing}; leave name_filter out to "
                "keep all entries of a dict."
            )
        self._names = sorted(names if name_filter is None else set(name_filter))
        vector = self._observation(
            tree.map_structure(lambda leaf: np.zeros(leaf.shape, leaf.dtype), spec)
        )
        self._observation_spec = dm_env_specs.Array(vector.shape, vector.dtype, "state")

    def observation_spec(self) -> Any:
        """The spec of the vector, without bounds."""
        return self._observation_spec

    def _observation(self, observation: Any) -> np.ndarray:
        leaves = tree.flatten([observation[name] for name in self._names])
        return np.concatenate([np.atleast_1d(leaf) for leaf in leaves])
