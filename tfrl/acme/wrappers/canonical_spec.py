"""`CanonicalSpecWrapper`, for actions between -1 and 1."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.specs import dm_env_specs
from tfrl.typing import types


class CanonicalSpecWrapper(base.EnvironmentWrapper):
    """Takes actions in [-1, 1] and maps them to the bounds of the environment.

    -1 becomes the minimum and 1 the maximum. Only bounded float actions are mapped;
    other actions do not change.
    """

    def __init__(self, environment: dm_env.Environment, clip: bool = False):
        """Wraps `environment`.

        Args:
          environment: The environment.
          clip: Whether actions beyond -1 and 1 become -1 and 1; if not, they are mapped
            to values beyond the bounds.

        Raises:
          ValueError: If a bound is infinite.
        """
        super().__init__(environment)
        self._clip = clip
        for path, spec in tree.flatten_with_path(environment.action_spec()):
            if _is_scaled(spec) and not _has_finite_range(spec):
                raise ValueError(
                    f"environment: got the spec {spec} for the action {path}, expected "
                    "finite bounds, which -1 and 1 can be mapped to; give the "
                    "environment bounds first."
                )

    def step(self, action: types.NestedArray) -> dm_env.TimeStep:
        """Applies the action to which `action` is mapped."""
        specs = self._environment.action_spec()
        return self._environment.step(
            tree.map_structure_up_to(specs, self._scale, specs, action)
        )

    def action_spec(self) -> Any:
        """The specs of the actions, bounded by -1 and 1."""

        def convert(spec: Any) -> Any:
            if not _is_scaled(spec):
                return spec
            ones = np.ones(spec.shape, spec.dtype)
            return spec.replace(minimum=-ones, maximum=ones)

        return tree.map_structure(convert, self._environment.action_spec())

    def _scale(self, spec: Any, action: Any) -> Any:
        if not _is_scaled(spec):
            return action
        action = np.asarray(action, spec.dtype)
        if self._clip:
            action = np.clip(action, -1, 1)
        share = (action + 1) / 2
        # This is exact at both ends, unlike minimum + share * (maximum - minimum).
        return (1 - share) * spec.minimum + share * spec.maximum


def _is_scaled(spec: Any) -> bool:
    return isinstance(spec, dm_env_specs.BoundedArray) and np.issubdtype(
        spec.dtype, np.floating
    )


def _has_finite_range(spec: Any) -> bool:
    with np.errstate(over="ignore"):  # For bounds at the limits of the dtype.
        return bool(np.all(np.isfinite(spec.maximum - spec.minimum)))
