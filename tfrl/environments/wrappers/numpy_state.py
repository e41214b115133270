"""`NumpyStateWrapper`: lets `tf.train.Checkpoint` save and restore an environment."""

from __future__ import annotations

import contextlib
import io
import pickle
from typing import Any

import cloudpickle
import numpy as np

from tfrl.environments import py_environment
from tfrl.environments.wrappers import base
from tfrl.utils import numpy_storage

# The exceptions of pickle; pickling a thread pool raises NotImplementedError.
_PICKLING_ERRORS = (
    AttributeError,
    NotImplementedError,
    TypeError,
    ValueError,
    pickle.PicklingError,
)


class NumpyStateWrapper(base.PyEnvironmentBaseWrapper):
    """Saves any environment that can be pickled, also in checkpoints.

    `get_state` and `set_state` work for every environment that can be pickled. If the
    environment cannot save its state, such as most Gymnasium environments, it is
    pickled as a whole. With this wrapper a training loop resumes in mid-episode; the
    loops of `tfrl.train` save the result of `get_state`. In a loop of your own put
    `numpy_state` into the checkpoint:

    ```python
    environment = NumpyStateWrapper(suite_gym.load("CartPole-v1"))
    checkpoint = tf.train.Checkpoint(environment=environment.numpy_state)
    ```

    Make it the outermost wrapper, because restoring replaces a wrapped environment that
    was saved as a whole (without the surfaces of pygame). Checkpoints hold pickles,
    which can run code: restore only checkpoints that you trust.
    """

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`.

        Args:
          env: The environment.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `env` can neither save its state nor be pickled.
        """
        super().__init__(env, handle_auto_reset)
        self._numpy_state = _EnvironmentState(self)
        with contextlib.suppress(NotImplementedError):
            env.get_state()
            return
        _pickle(env)

    @property
    def numpy_state(self) -> numpy_storage.NumpyState:
        """The state for `tf.train.Checkpoint`, read whenever a checkpoint is saved.

        Its one array, `environment`, holds the pickled state as uint8.
        """
        return self._numpy_state

    def get_state(self) -> Any:
        """Returns the state of the environment, for `set_state`; it can be pickled.

        Raises:
          TypeError: If the environment can no longer be pickled.
        """
        with contextlib.suppress(NotImplementedError):
            return super().get_state()
        return {"pickled": _pickle((self._env, self._current_time_step))}

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned, in this process or another."""
        if "pickled" in state:
            self._env, self._current_time_step = _unpickle(state["pickled"])
        else:
            super().set_state(state)


class _EnvironmentState(numpy_storage.NumpyState):
    """Reads the environment's state when saved, and sets it when restored."""

    def __init__(self, wrapper: NumpyStateWrapper) -> None:
        super().__init__()
        self._wrapper = wrapper

    def serialize(self) -> bytes:
        self.environment = np.frombuffer(_pickle(self._wrapper.get_state()), np.uint8)
        return super().serialize()

    def deserialize(self, string_value: bytes) -> None:
        super().deserialize(string_value)
        self._wrapper.set_state(pickle.loads(self.environment.tobytes()))


class _WithoutDrawing:
    """Leaves out the surfaces of pygame, which cannot be pickled.

    They are None after restoring, as before the first picture.
    """

    def persistent_id(self, value: Any) -> str | None:
        module = type(value).__module__
        return "drawing" if module.partition(".")[0] == "pygame" else None


class _Pickler(_WithoutDrawing, pickle.Pickler):
    pass


class _CloudPickler(_WithoutDrawing, cloudpickle.Pickler):
    """Pickles lambdas and classes defined in functions as well."""


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> None:
        return None


def _pickle(value: Any) -> bytes:
    problem: Exception | None = None
    for pickler in (_Pickler, _CloudPickler):
        file = io.BytesIO()
        try:
            pickler(file).dump(value)
        except _PICKLING_ERRORS as error:
            problem = error
        else:
            return file.getvalue()
    raise TypeError(
        f"env: got an environment that cannot be pickled ({problem}), expected one "
        "that has get_state and set_state, or can be pickled; write these methods, or "
        "keep threads, files and windows out of it."
    ) from problem


def _unpickle(data: bytes) -> Any:
    return _Unpickler(io.BytesIO(data)).load()
