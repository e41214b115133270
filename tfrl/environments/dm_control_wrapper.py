"""`DmControlWrapper`: a task of dm_control as a `PyEnvironment`.

dm_control computes with float64 and agents with float32, so specs and values are
converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tree

from tfrl.environments import dm_env_wrapper
from tfrl.specs import dm_env_specs
from tfrl.trajectories import time_step as ts

_FLOAT32 = {np.float64: np.float32}
_STEP_TYPES = (ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST)


def convert_time_step(time_step: Any) -> ts.TimeStep:
    """Returns our `TimeStep` for one of dm_env, with float32 for float64.

    A reward of None, as FIRST steps have it, becomes 0, and a discount of None 1.
    """
    reward = 0.0 if time_step.reward is None else time_step.reward
    discount = 1.0 if time_step.discount is None else time_step.discount
    return ts.TimeStep(
        _STEP_TYPES[int(time_step.step_type)],
        np.asarray(reward, np.float32),
        np.asarray(discount, np.float32),
        tree.map_structure(_as_float32, time_step.observation),
    )


def convert_spec(spec: Any) -> Any:
    """Returns our array spec for one of dm_env, or a nest, with float32 for float64.

    Raises:
      ValueError: If something in the nest is no spec.
    """
    return tree.map_structure(
        lambda leaf: (
            leaf.replace(dtype=np.float32) if leaf.dtype == np.float64 else leaf
        ),
        dm_env_specs.from_dm_env_spec(spec),
    )


class DmControlWrapper(dm_env_wrapper.DmEnvWrapper):
    """A `dm_control` environment behind our interface; see `DmEnvWrapper` for the rest.

    Observations and actions of float64 are float32 here.
    """

    def __init__(
        self,
        env: Any,
        render_kwargs: Mapping[str, Any] | None = None,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`.

        Args:
          env: The dm_control environment, or a wrapper of dm_control around one.
          render_kwargs: Keyword arguments for `physics.render`, such as `height`,
            `width` and `camera_id`.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `env` is something else.
          ValueError: If one of its specs cannot be converted.
        """
        super().__init__(env, _FLOAT32, handle_auto_reset)
        self._render_kwargs = dict(render_kwargs or {})

    @property
    def physics(self) -> Any:
        """The physics of the dm_control environment."""
        return self._env.physics

    def seed(self, seed: int) -> int:
        """Seeds the random numbers of the task, which the next reset draws from.

        Raises:
          NotImplementedError: If it has none that can be reached.
        """
        random = getattr(getattr(self._env, "task", None), "random", None)
        if random is None:
            random = getattr(self._env, "random_state", None)
        if random is None:
            return super().seed(seed)
        random.seed(seed)
        return seed

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns a picture, uint8 `[height, width, 3]`.

        Raises:
          ValueError: If `mode` is not "rgb_array".
        """
        if mode != "rgb_array":
            raise ValueError(
                f"render: got mode {mode!r}, expected 'rgb_array', the only one of "
                "dm_control; show the pictures yourself or use dm_control.viewer."
            )
        return self._env.physics.render(**self._render_kwargs)


def _as_float32(value: Any) -> np.ndarray:
    value = np.asarray(value)
    return value.astype(np.float32) if value.dtype == np.float64 else value
