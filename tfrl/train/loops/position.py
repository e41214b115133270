"""The time step and policy state at which a loop continues, for its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.environments import tf_environment
from tfrl.savers import serialization
from tfrl.system import log

if TYPE_CHECKING:
    from tfrl.typing import types


class Position(tf.train.experimental.PythonState):
    """The current time step and policy state, saved with the environment's state.

    A checkpoint holds all three as arrays and JSON. If the environment cannot save its
    state, the checkpoint holds None instead, and one warning gives the reason. If a
    checkpoint's position cannot be restored, there is a warning, and the loop begins a
    new episode.
    """

    def __init__(self, environment: tf_environment.TFEnvironment) -> None:
        """Starts without a position.

        Args:
          environment: The environment whose state is saved with the position.
        """
        self._environment = environment
        self._time_step: Any = None
        self._policy_state: Any = None
        self._has_warned = False

    @property
    def is_set(self) -> bool:
        """Whether there is a position."""
        return self._time_step is not None

    def get(self) -> tuple[types.TimeStep, types.NestedTensor]:
        """Returns the time step and the policy state; both None without a position."""
        return self._time_step, self._policy_state

    def set(
        self, time_step: types.TimeStep | None, policy_state: types.NestedTensor
    ) -> None:
        """Sets the time step and the policy state to continue from."""
        self._time_step, self._policy_state = time_step, policy_state

    def take(self) -> tuple[types.TimeStep, types.NestedTensor]:
        """Returns the position and forgets it.

        If the next call fails, the environment's state is unknown; without a position,
        the next call begins a new episode.
        """
        position = self.get()
        self.set(None, None)
        return position

    def serialize(self) -> bytes:
        """Returns the position and the environment's state as bytes."""
        nothing = serialization.to_bytes(None)
        if not self.is_set:
            return nothing
        time_step, policy_state = tf.nest.map_structure(lambda t: t.numpy(), self.get())
        try:
            state = {
                "time_step": time_step,
                "policy_state": policy_state,
                "environment": self._environment.get_state(),
            }
            return serialization.to_bytes(state)
        except NotImplementedError as error:
            self._warn_once(str(error))
        except serialization.UnsupportedValueError as error:
            of_environment = serialization.path_text(error.path[1:])
            self._warn_once(
                f"get_state(){of_environment}: got a {error.kind.__module__}."
                f"{error.kind.__qualname__}, expected an array, a number, a string, "
                "bytes, None, or a nest of these; return only such values from the "
                "environment's get_state, and make the others from them in set_state."
            )
        return nothing

    def deserialize(self, string_value: bytes) -> None:
        """Restores the position and the environment from bytes of `serialize`."""
        self.set(None, None)
        try:
            state = serialization.from_bytes(string_value)
            if state is None:
                return
            self._environment.set_state(state["environment"])
            position = state["time_step"], state["policy_state"]
            self.set(*tf.nest.map_structure(tf.convert_to_tensor, position))
        except Exception as error:
            # A state of another version of the environment can raise anything.
            log.warn(
                f"checkpoint: the state of the environment {self._environment_name()} "
                f"cannot be restored: {_text_of(error)}. The rest of the checkpoint is "
                "restored. The run continues with a new episode."
            )

    def _warn_once(self, reason: str) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        log.warn(
            f"The checkpoints of this run leave out the state of the environment "
            f"{self._environment_name()}, so a resumed run begins a new episode. "
            f"{reason}"
        )

    def _environment_name(self) -> str:
        """Returns the name of the class of the innermost environment."""
        environment: Any = getattr(self._environment, "pyenv", self._environment)
        environment = (getattr(environment, "envs", None) or [environment])[0]
        environment = getattr(environment, "gym", environment)
        while hasattr(environment, "wrapped_env"):
            environment = environment.wrapped_env()
        return type(getattr(environment, "unwrapped", environment)).__name__


def _text_of(error: Exception) -> str:
    if isinstance(error, serialization.UnreadableBytesError):
        return str(error)
    return f"{type(error).__name__}: {error}"
