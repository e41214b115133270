"""Loads Gymnasium's MuJoCo tasks, with float32 observations.

Needs the extra: `pip install 'tfrl[mujoco]'`. Without a display they are rendered with
EGL (see `headless`), unless `MUJOCO_GL` is set.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from tfrl.environments import extras, py_environment, suite_gym
from tfrl.environments.gymnasium import headless


def is_available() -> bool:
    """Whether the extra is installed."""
    return extras.is_installed("mujoco")


def load(
    environment_name: str,
    discount: float = 1.0,
    max_episode_steps: int | None = None,
    gym_env_wrappers: suite_gym.GymEnvWrappers = (),
    env_wrappers: suite_gym.EnvWrappers = (),
    spec_dtype_map: Mapping[type, Any] | None = None,
    *,
    gym_kwargs: Mapping[str, Any] | None = None,
    render_kwargs: Mapping[str, Any] | None = None,
) -> py_environment.PyEnvironment:
    """Makes a MuJoCo task and wraps it.

    The current version is -v5. Versions -v2 and -v3 ran on mujoco-py, which is no
    longer maintained: for them the oldest version that runs, mostly -v4, is loaded with
    a warning. The physics are similar, but returns differ in detail.

    Args:
      environment_name: A name such as "HalfCheetah-v5".
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for the registered limit, 0 for no limit.
      gym_env_wrappers: Applied in turn to the Gymnasium environment.
      env_wrappers: Applied in turn to the `PyEnvironment`, after the time limit.
      spec_dtype_map: Maps classes of spaces to the dtypes of their specs; float32 for a
        Box by default.
      gym_kwargs: Keyword arguments for the environment's constructor.
      render_kwargs: Options of rendering, such as `width` and `camera_name`.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If no environment of that name is registered.
    """
    extras.require("suite_mujoco", "pip install 'tfrl[mujoco]'", "mujoco")
    headless.prepare_mujoco()
    return suite_gym.load(
        _running_version(environment_name),
        discount=discount,
        max_episode_steps=max_episode_steps,
        gym_env_wrappers=gym_env_wrappers,
        env_wrappers=env_wrappers,
        spec_dtype_map=spec_dtype_map or {gymnasium.spaces.Box: np.float32},
        gym_kwargs=gym_kwargs,
        render_kwargs=render_kwargs,
    )


def _running_version(environment_name: str) -> str:
    """Returns the oldest version that runs, for -v1 to -v3; else the name itself."""
    match = re.fullmatch(r"(\w+)-v[123]", environment_name)
    if match is None:
        return environment_name
    versions = {
        name: spec.version
        for name, spec in gymnasium.registry.items()
        if spec.name == match[1] and _runs(spec)
    }
    if not versions:
        return environment_name
    name = min(versions, key=lambda name: versions[name] or 0)
    newest = max(versions, key=lambda name: versions[name] or 0)
    warnings.warn(
        f"environment_name: got {environment_name!r}, which ran on mujoco-py and can "
        f"no longer be made; loading {name!r}, the nearest version that runs. Use "
        f"{newest!r} for new work.",
        stacklevel=3,
    )
    return name


def _runs(spec: Any) -> bool:
    """Whether a version is one of Gymnasium's own that can be made.

    The oldest are registered only to raise errors, or by Gymnasium-Robotics, for
    mujoco-py. Pusher's fourth version needs MuJoCo 2.
    """
    of_gymnasium = str(spec.entry_point).startswith("gymnasium.envs.mujoco.")
    return of_gymnasium and spec.id != "Pusher-v4"
