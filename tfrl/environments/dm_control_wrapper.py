"""`DmControlWrapper` turns a task of dm_control into a `PyEnvironment`.

dm_control computes in float64 and agents in float32, so specs and values are converted.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import tree

from tfrl.environments import dm_env_wrapper
from tfrl.environments.gymnasium import mujoco_state
from tfrl.trajectories import time_step as ts

_FLOAT32 = {np.dtype(np.float64): np.dtype(np.float32)}


def convert_time_step(time_step: Any) -> ts.TimeStep:
    """Converts a time step of dm_env to our `TimeStep`, and float64 to float32.

    A reward of None, which FIRST steps have, becomes 0; a discount of None becomes 1.
    """
    reward = 0.0 if time_step.reward is None else time_step.reward
    discount = 1.0 if time_step.discount is None else time_step.discount
    return ts.TimeStep(
        dm_env_wrapper.STEP_TYPES[int(time_step.step_type)],
        np.asarray(reward, np.float32),
        np.asarray(discount, np.float32),
        tree.map_structure(_as_float32, time_step.observation),
    )


def convert_spec(spec: Any) -> Any:
    """Converts a nest of specs of dm_env to array specs, and float64 to float32.

    Raises:
      ValueError: If a leaf of the nest is not a spec of dm_env.
    """
    return dm_env_wrapper.convert_specs(spec, _FLOAT32)


class DmControlWrapper(dm_env_wrapper.DmEnvWrapper):
    """A `dm_control` environment as a `PyEnvironment`; see also `DmEnvWrapper`.

    Observations and actions of float64 become float32. `get_state` and `set_state` work
    for the tasks of dm_control's suite, and for environments that have such methods.
    """

    def __init__(
        self,
        env: Any,
        render_kwargs: Mapping[str, Any] | None = None,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`.

        Args:
          env: The dm_control environment, or one of dm_control's wrappers.
          render_kwargs: Keyword arguments for `physics.render`, such as `height`,
            `width` and `camera_id`.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `env` is not a dm_env environment.
          ValueError: If one of its specs cannot be converted.
        """
        super().__init__(env, _FLOAT32, handle_auto_reset)
        self._render_kwargs = dict(render_kwargs or {})

    @property
    def physics(self) -> Any:
        """The physics of the dm_control environment."""
        return self._env.physics

    def seed(self, seed: int) -> int:
        """Seeds the random numbers of the task, from the next reset on.

        Raises:
          NotImplementedError: If the task has no generator that can be reached.
        """
        random = getattr(getattr(self._env, "task", None), "random", None)
        if random is None:
            random = getattr(self._env, "random_state", None)
        if random is None:
            return super().seed(seed)
        random.seed(seed)
        return seed

    def _state_methods(self) -> tuple[Any, Any]:
        if not mujoco_state.is_dm_control(self._env):
            return super()._state_methods()
        return (
            functools.partial(mujoco_state.get_task_state, self._env),
            functools.partial(mujoco_state.set_task_state, self._env),
        )

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns a picture, uint8 `[height, width, 3]`.

        Raises:
          ValueError: If `mode` is not "rgb_array".
        """
        if mode != "rgb_array":
            raise ValueError(
                f"render: got mode {mode!r}, expected 'rgb_array', the only mode of "
                "dm_control; show the pictures yourself or use dm_control.viewer."
            )
        return self._env.physics.render(**self._render_kwargs)


def _as_float32(value: Any) -> np.ndarray:
    value = np.asarray(value)
    return value.astype(np.float32) if value.dtype == np.float64 else value
