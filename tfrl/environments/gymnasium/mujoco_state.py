"""The state of Gymnasium's MuJoCo environments, and of the tasks of dm_control's suite.

The state from which MuJoCo computes the next step (`mjSTATE_INTEGRATION`) does not
determine the current observation: an environment observes the positions of bodies and
the contact forces at the beginning of the last substep, and computing them again would
give their values at its end. So the arrays that MuJoCo has derived are saved, too.

A task of dm_control has MuJoCo's state, the model's arrays, the task's random numbers
and the environment's counters. Some tasks change the model when an episode begins. The
suite's tasks hold no other state. Tasks from elsewhere may hold more, so their state is
not supported.
"""

from __future__ import annotations

import copy
import importlib
import types
from typing import Any

import numpy as np

from tfrl.compilation import internals

# The classes of Gymnasium's tasks.
CLASSES = tuple(
    f"gymnasium.envs.mujoco.{module}_{version}:{name}"
    for module, name in (
        ("ant", "AntEnv"),
        ("half_cheetah", "HalfCheetahEnv"),
        ("hopper", "HopperEnv"),
        ("humanoid", "HumanoidEnv"),
        ("humanoidstandup", "HumanoidStandupEnv"),
        ("inverted_double_pendulum", "InvertedDoublePendulumEnv"),
        ("inverted_pendulum", "InvertedPendulumEnv"),
        ("pusher", "PusherEnv"),
        ("reacher", "ReacherEnv"),
        ("swimmer", "SwimmerEnv"),
        ("walker2d", "Walker2dEnv"),
    )
    for version in ("v4", "v5")
)
_ENVIRONMENT = "dm_control.rl.control", "Environment"
_SUITE = "dm_control.suite."
# The largest arrays of models. No task of the suite changes them.
_ASSETS = ("bvh_", "flex_", "mesh_", "oct_", "skin_", "tex_")


def get_state(env: Any) -> dict[str, Any]:
    """Returns the physics of a `MujocoEnv`: its state and the derived arrays."""
    mujoco = importlib.import_module("mujoco")
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(env.model, kind))
    mujoco.mj_getState(env.model, env.data, state, kind)
    return {"integration": state, "derived": _derived(env.data)}


def set_state(env: Any, state: dict[str, Any]) -> None:
    """Sets the physics of a `MujocoEnv`.

    Raises:
      ValueError: If the state belongs to another model.
    """
    mujoco = importlib.import_module("mujoco")
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    size = mujoco.mj_stateSize(env.model, kind)
    if state["integration"].shape != (size,):
        raise ValueError(
            f"state: got {state['integration'].size} numbers of another model, "
            f"expected {size}; use the model and the release of MuJoCo that saved the "
            "state."
        )
    mujoco.mj_setState(env.model, env.data, state["integration"], kind)
    # Computes the data that is not saved, such as the contacts, for pictures.
    mujoco.mj_forward(env.model, env.data)
    mujoco.mj_setState(env.model, env.data, state["integration"], kind)
    present = _derived(env.data)
    for name, value in state["derived"].items():
        if name in present and present[name].shape == value.shape:
            present[name][...] = value


def _derived(data: Any) -> dict[str, np.ndarray]:
    """Returns the numbers in `data`, except the single contacts'."""
    return _float_arrays(data, without=("efc_", "iefc_", "contact"))


def _float_arrays(owner: Any, without: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Returns the float arrays of a model or its data, without copying them.

    Args:
      owner: An `MjModel` or `MjData`.
      without: Prefixes of the names of arrays to leave out.
    """
    names = (name for name in dir(owner) if not name.startswith(("_", *without)))
    values = {name: getattr(owner, name) for name in names}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size
    }


def is_dm_control(env: Any) -> bool:
    """Whether the environment is a task of the suite, with or without pixels."""
    env = _without_pixels(env)
    kind = type(env)
    # This excludes wrappers, which may have their own state.
    is_environment = (kind.__module__, kind.__qualname__) == _ENVIRONMENT
    return is_environment and type(env.task).__module__.startswith(_SUITE)


def get_task_state(env: Any) -> dict[str, Any]:
    """Returns the state of a task of the suite: arrays, numbers and strings."""
    env = _without_pixels(env)
    return copy.deepcopy(
        {
            "physics": get_state(_mujoco(env)),
            "model": _numbers_of_model(env),
            "random": env.task.random.get_state(legacy=False),
            "counters": [
                internals.look_up(env, name) for name in internals.DM_CONTROL_COUNTERS
            ],
        }
    )


def set_task_state(env: Any, state: dict[str, Any]) -> None:
    """Sets a state that `get_task_state` returned, here or in another process.

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
    set_state(_mujoco(env), state["physics"])
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
    return _float_arrays(env.physics.model.ptr, without=_ASSETS)
