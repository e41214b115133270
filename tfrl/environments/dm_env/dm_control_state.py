"""The state of the tasks of dm_control's suite.

It consists of MuJoCo's state, the model's arrays, the task's random numbers and the
environment's counters. Some tasks change the model when an episode begins. The suite's
tasks hold no other state. Tasks from elsewhere may hold more, so their state is not
supported.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import numpy as np

from tfrl.compilation import internals
from tfrl.environments.gymnasium import mujoco_state

_ENVIRONMENT = "dm_control.rl.control", "Environment"
_SUITE = "dm_control.suite."
# The largest arrays of models. No task of the suite changes them.
_ASSETS = ("bvh_", "flex_", "mesh_", "oct_", "skin_", "tex_")


def is_known(env: Any) -> bool:
    """Whether the environment is a task of the suite, with or without pixels."""
    env = _without_pixels(env)
    kind = type(env)
    # This excludes wrappers, which may have their own state.
    is_environment = (kind.__module__, kind.__qualname__) == _ENVIRONMENT
    return is_environment and type(env.task).__module__.startswith(_SUITE)


def get_state(env: Any) -> dict[str, Any]:
    """Returns the state of a known environment: arrays, numbers and strings."""
    env = _without_pixels(env)
    return copy.deepcopy(
        {
            "physics": mujoco_state.get_state(_mujoco(env)),
            "model": _numbers_of_model(env),
            "random": env.task.random.get_state(legacy=False),
            "counters": [
                internals.look_up(env, name) for name in internals.DM_CONTROL_COUNTERS
            ],
        }
    )


def set_state(env: Any, state: dict[str, Any]) -> None:
    """Sets a state that `get_state` returned, here or in another process.

    Raises:
      ValueError: If the state belongs to another model.
    """
    env = _without_pixels(env)
    present = _numbers_of_model(env)
    given = {name: value.shape for name, value in state["model"].items()}
    if given != {name: value.shape for name, value in present.items()}:
        raise ValueError(
            "state: got the state of another model than the model of "
            f"{type(env.task).__name__}; load the task, and the release of MuJoCo, "
            "that saved the state."
        )
    # Some tasks compute parts of themselves when an episode begins.
    env.reset()
    for name, value in state["model"].items():
        present[name][...] = value
    mujoco_state.set_state(_mujoco(env), state["physics"])
    env.task.random.set_state(state["random"])
    for name, value in zip(
        internals.DM_CONTROL_COUNTERS, state["counters"], strict=True
    ):
        setattr(env, name, value)


def _without_pixels(env: Any) -> Any:
    is_pixels = type(env).__module__ == f"{_SUITE}wrappers.pixels"
    return internals.look_up(env, internals.DM_CONTROL_WRAPPED) if is_pixels else env


def _mujoco(env: Any) -> Any:
    return types.SimpleNamespace(model=env.physics.model.ptr, data=env.physics.data.ptr)


def _numbers_of_model(env: Any) -> dict[str, np.ndarray]:
    """Returns the model's own float arrays, without assets."""
    return mujoco_state.float_arrays(env.physics.model.ptr, without=_ASSETS)
