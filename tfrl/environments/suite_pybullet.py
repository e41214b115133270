"""Loads PyBullet's tasks for Gymnasium, such as "HalfCheetahBulletEnv-v0".

Needs `pip install pybullet-envs-gymnasium`, which registers them. It is not an extra of
this package, because PyBullet has no wheels for Python above 3.11: there pip has to
compile it.
"""

from __future__ import annotations

import importlib
from typing import Any

from tfrl.environments import extras, py_environment, suite_gym

_MODULES = ("pybullet", "pybullet_envs_gymnasium")


def is_available() -> bool:
    """Whether PyBullet and its tasks are installed."""
    return extras.is_installed(*_MODULES)


def load(
    environment_name: str, *args: Any, **kwargs: Any
) -> py_environment.PyEnvironment:
    """Registers PyBullet's tasks and makes one; for the arguments see `suite_gym.load`.

    Raises:
      ImportError: If the packages are not installed.
      ValueError: If no environment of that name is registered.
    """
    extras.require(
        "suite_pybullet",
        "pip install pybullet-envs-gymnasium",
        *_MODULES,
        note="PyBullet has wheels up to Python 3.11 and is compiled for newer ones",
    )
    importlib.import_module("pybullet_envs_gymnasium")
    return suite_gym.load(environment_name, *args, **kwargs)
