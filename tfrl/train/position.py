"""The time step and policy state at which a loop continues, for its checkpoints."""

from __future__ import annotations

import pickle
from typing import Any

import tensorflow as tf

from tfrl.environments import tf_environment


class Position(tf.train.experimental.PythonState):
    """The current time step and policy state, saved with the environment's state.

    A checkpoint holds all three as bytes. If the environment cannot save its state, the
    checkpoint holds None instead.
    """

    def __init__(self, environment: tf_environment.TFEnvironment) -> None:
        """Starts without a position.

        Args:
          environment: The environment whose state is saved with the position.
        """
        self._environment = environment
        self._time_step: Any = None
        self._policy_state: Any = None

    @property
    def is_set(self) -> bool:
        """Whether there is a position."""
        return self._time_step is not None

    def get(self) -> tuple[Any, Any]:
        """Returns the time step and the policy state; both None without a position."""
        return self._time_step, self._policy_state

    def set(self, time_step: Any, policy_state: Any) -> None:
        """Sets the time step and the policy state to continue from."""
        self._time_step, self._policy_state = time_step, policy_state

    def take(self) -> tuple[Any, Any]:
        """Returns the position and forgets it.

        If the call that follows fails, the environment's state is unknown; without a
        position, the next call begins a new episode.
        """
        position = self.get()
        self.set(None, None)
        return position

    def serialize(self) -> bytes:
        """Returns the position and the environment's state as bytes."""
        if not self.is_set:
            return pickle.dumps(None)
        try:
            environment_state = self._environment.get_state()
        except NotImplementedError:
            return pickle.dumps(None)
        position = tf.nest.map_structure(lambda t: t.numpy(), self.get())
        return pickle.dumps((position, environment_state))

    def deserialize(self, string_value: bytes) -> None:
        """Restores the position and the environment from bytes of `serialize`."""
        state = pickle.loads(string_value)
        if state is None:
            self.set(None, None)
            return
        position, environment_state = state
        self._environment.set_state(environment_state)
        self.set(*tf.nest.map_structure(tf.convert_to_tensor, position))
