"""`NumpyStateWrapper` lets `tf.train.Checkpoint` save and restore an environment."""

from __future__ import annotations

import warnings

import numpy as np

from tfrl.environments import py_environment
from tfrl.environments.wrappers import base
from tfrl.savers import serialization
from tfrl.utils import numpy_storage


class NumpyStateWrapper(base.PyEnvironmentBaseWrapper):
    """Lets your own checkpoint save the state of an environment.

    The loops of `tfrl.train` save the result of `get_state` themselves. In your own
    loop, put `numpy_state` into the checkpoint:

    ```python
    environment = NumpyStateWrapper(suite_gym.load("CartPole-v1"))
    checkpoint = tf.train.Checkpoint(environment=environment.numpy_state)
    ```

    The checkpoint holds arrays and JSON, no pickles, so restoring it cannot run code.
    """

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`.

        Args:
          env: The environment, with `get_state` and `set_state`.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If the state of `env` holds other values than arrays, numbers,
            strings, bytes, None, and nests of these.
          NotImplementedError: If `env` cannot save its state.
        """
        super().__init__(env, handle_auto_reset)
        self._numpy_state = _EnvironmentState(self)
        serialization.to_bytes(env.get_state())

    @property
    def numpy_state(self) -> numpy_storage.NumpyState:
        """The state for `tf.train.Checkpoint`, read whenever a checkpoint is saved.

        Its one array, `environment`, holds the state as uint8.
        """
        return self._numpy_state


class _EnvironmentState(numpy_storage.NumpyState):
    """Reads the environment's state when saved, and sets it when restored."""

    def __init__(self, wrapper: NumpyStateWrapper) -> None:
        super().__init__()
        self._wrapper = wrapper

    def serialize(self) -> bytes:
        state = serialization.to_bytes(self._wrapper.get_state())
        self.environment = np.frombuffer(state, np.uint8)
        return super().serialize()

    def deserialize(self, string_value: bytes) -> None:
        super().deserialize(string_value)
        try:
            state = serialization.from_bytes(self.environment.tobytes())
        except serialization.UnreadableBytesError as error:
            warnings.warn(
                f"checkpoint: the state of the environment cannot be restored: {error}."
                " The next step of the environment begins a new episode.",
                RuntimeWarning,
                stacklevel=2,
            )
            self._wrapper._restore_time_step(None)
        else:
            self._wrapper.set_state(state)
