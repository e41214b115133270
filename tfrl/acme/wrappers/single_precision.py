"""`SinglePrecisionWrapper`, for numbers of 32 bits instead of 64."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.specs import bounds, dm_env_specs
from tfrl.typing import types

_SINGLE = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.int64): np.dtype(np.int32),
}


class SinglePrecisionWrapper(base.EnvironmentWrapper):
    """Converts float64 to float32 and int64 to int32, in time steps and specs.

    Actions are taken in 32 bits and converted to the dtypes of the wrapped environment.
    Other dtypes do not change.
    """

    def step(self, action: types.NestedArray) -> dm_env.TimeStep:
        """Applies `action`, or starts an episode after a LAST step."""
        return super().step(base.cast(action, self._environment.action_spec()))

    def _changed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
        rest = tree.map_structure(_convert_value, timestep[1:])
        return dm_env.TimeStep(timestep.step_type, *rest)

    def observation_spec(self) -> Any:
        """The nest of specs of the observations."""
        return tree.map_structure(_convert_spec, self._environment.observation_spec())

    def action_spec(self) -> Any:
        """The nest of specs of the actions."""
        return tree.map_structure(_convert_spec, self._environment.action_spec())

    def reward_spec(self) -> Any:
        """The nest of specs of the rewards."""
        return tree.map_structure(_convert_spec, self._environment.reward_spec())

    def discount_spec(self) -> Any:
        """The nest of specs of the discount."""
        return tree.map_structure(_convert_spec, self._environment.discount_spec())


def _convert_value(value: Any) -> Any:
    if value is None:  # The reward and the discount of a FIRST step.
        return None
    value = np.asarray(value)
    return value.astype(_SINGLE.get(value.dtype, value.dtype), copy=False)


def _convert_spec(spec: Any) -> Any:
    dtype = _SINGLE.get(spec.dtype)
    if dtype is None:
        return spec
    if isinstance(spec, dm_env_specs.DiscreteArray) or not isinstance(
        spec, dm_env_specs.BoundedArray
    ):
        return spec.replace(dtype=dtype)
    return spec.replace(
        dtype=dtype,
        minimum=_convert_bound(spec.minimum, dtype),
        maximum=_convert_bound(spec.maximum, dtype),
    )


def _convert_bound(bound: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Converts a bound; if an integer cannot hold it, it becomes the dtype's limit."""
    if dtype.kind == "i":
        return bounds.clip_to_dtype(bound, dtype).astype(dtype)
    with np.errstate(over="ignore"):  # Beyond float32 there is no bound.
        return bound.astype(dtype)
