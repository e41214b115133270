"""The state of Gymnasium's MuJoCo environments.

The state from which MuJoCo computes the next step (`mjSTATE_INTEGRATION`) does not
determine the current observation: an environment observes the positions of bodies and
the contact forces at the beginning of the last substep, and computing them again would
give their values at its end. So the arrays that MuJoCo has derived are saved, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

_CLASSES = {
    "ant": "AntEnv",
    "half_cheetah": "HalfCheetahEnv",
    "hopper": "HopperEnv",
    "humanoid": "HumanoidEnv",
    "humanoidstandup": "HumanoidStandupEnv",
    "inverted_double_pendulum": "InvertedDoublePendulumEnv",
    "inverted_pendulum": "InvertedPendulumEnv",
    "pusher": "PusherEnv",
    "reacher": "ReacherEnv",
    "swimmer": "SwimmerEnv",
    "walker2d": "Walker2dEnv",
}


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
    return float_arrays(data, without=("efc_", "iefc_", "contact"))


def float_arrays(owner: Any, without: tuple[str, ...]) -> dict[str, np.ndarray]:
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


# The functions that read and set the state, by module and class.
ADAPTERS: dict[str, tuple[Callable, Callable]] = {
    f"gymnasium.envs.mujoco.{module}_{version}:{name}": (get_state, set_state)
    for module, name in _CLASSES.items()
    for version in ("v4", "v5")
}
