"""`PyEnvironmentBaseWrapper`, which passes all calls on to the wrapped environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.environments import py_environment
from tfrl.environments.boundary import leaf_checks
from tfrl.trajectories import time_step as ts
from tfrl.utils import mixins


class PyEnvironmentBaseWrapper(mixins.Forwards, py_environment.PyEnvironment):
    """Passes all calls on to the wrapped environment; subclasses change some of them.

    Attributes that are not found here are looked up in the wrapped environment, so the
    outermost wrapper has the attributes of the whole chain.
    """

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`.

        Args:
          env: The environment.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `env` is not a `PyEnvironment`.
        """
        super().__init__(handle_auto_reset)
        if not isinstance(env, py_environment.PyEnvironment):
            raise TypeError(
                f"env: got {env!r} of type {type(env).__name__}, expected a "
                "PyEnvironment; wrap a Gymnasium environment with suite_gym.wrap_env "
                "and one of dm_env with DmEnvWrapper first, and a TFPyEnvironment "
                "after it was wrapped."
            )
        self._env = env

    @property
    def batched(self) -> bool:
        """Whether the wrapped environment is batched."""
        return self._env.batched

    @property
    def batch_size(self) -> int | None:
        """The batch size of the wrapped environment."""
        return self._env.batch_size

    @property
    def is_bandit(self) -> bool:
        """Whether the wrapped environment is a bandit."""
        return self._env.is_bandit is True  # Not a mock's attribute.

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute here or in the wrapped environment; see `PyEnvironment`."""
        if name in vars(self) or hasattr(type(self), name):
            super().change(name, value, calls)
        else:
            self._env.change(name, value, calls)

    def wrapped_env(self) -> py_environment.PyEnvironment:
        """Returns the wrapped environment."""
        return self._env

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self._env.observation_spec()

    def action_spec(self) -> Any:
        """The specs of the actions."""
        return self._env.action_spec()

    def reward_spec(self) -> Any:
        """The specs of the rewards."""
        return self._env.reward_spec()

    def discount_spec(self) -> Any:
        """The spec of the discount."""
        return self._env.discount_spec()

    def get_info(self) -> Any:
        """Returns the info of the wrapped environment."""
        return self._env.get_info()

    def seed(self, seed: Any) -> Any:
        """Seeds the wrapped environment."""
        return self._env.seed(seed)

    @property
    def is_seeded(self) -> bool:
        """Whether this wrapper or the wrapped environment was given a seed."""
        return self._is_seeded or self._env.is_seeded

    def render(self, mode: str = "rgb_array") -> Any:
        """Renders the wrapped environment."""
        return self._env.render(mode)

    def close(self) -> None:
        """Closes the wrapped environment."""
        self._env.close()

    def get_state(self) -> Any:
        """Returns the state of the wrapper and of the wrapped environment."""
        return {
            "wrapper": self._get_wrapper_state(),
            "env": py_environment.capture_state(self._env),
            "time_step": self._copied_time_step(),
        }

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        py_environment.restore_state(self._env, state["env"])
        self._set_wrapper_state(state["wrapper"])
        self._restore_time_step(state["time_step"])

    def _get_wrapper_state(self) -> Any:
        """Returns this wrapper's own state; None by default."""

    def _set_wrapper_state(self, state: Any) -> None:
        """Restores a state that `_get_wrapper_state` returned."""

    def _reset(self) -> ts.TimeStep:
        return self._changed(self._env.reset())

    def _step(self, action: Any) -> ts.TimeStep:
        return self._changed(self._env.step(action))

    def _changed(self, time_step: ts.TimeStep) -> ts.TimeStep:
        """Returns what becomes of a time step of the wrapped environment."""
        return time_step


def as_declared(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns an observation's array in the dtype of its spec, if it has no dtype.

    One of another dtype stays as it is, so that the checks of time steps find it.
    """
    array = np.asarray(value)
    if leaf_checks.has_no_dtype(value, array, dtype):
        return array.astype(dtype)
    return array


def outer_shape(env: py_environment.PyEnvironment) -> tuple[int, ...]:
    """Returns `(B,)` if `env` is batched, else `()`."""
    size = env.batch_size
    return () if size is None else (size,)


def refuse_batched(env: py_environment.PyEnvironment, wrapper: str, hint: str) -> None:
    """Raises a ValueError if `env` is batched; the message ends with `hint`."""
    if env.batched:
        raise ValueError(
            f"env: got a batched environment (batch_size {env.batch_size}), expected a "
            "single one, because the episodes of a batch end at different steps; wrap "
            f"each member in {wrapper} before you batch them{hint}."
        )
