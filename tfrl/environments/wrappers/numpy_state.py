"""`NumpyStateWrapper`: environments that `tf.train.Checkpoint` saves and restores."""

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

# What pickle raises, and thread pools, which say NotImplementedError.
_PICKLING_ERRORS = (
    AttributeError,
    NotImplementedError,
    TypeError,
    ValueError,
    pickle.PicklingError,
)


class NumpyStateWrapper(base.PyEnvironmentBaseWrapper):
    """Gives an environment a state, and puts that into checkpoints.

    `get_state` and `set_state` work for every environment that can be pickled: one that
    cannot save its state, such as most of Gymnasium's, is saved as a whole. So a
    training loop goes on where it was, in mid-episode, once its environment is wrapped
    in this; it saves what `get_state` returns by itself. In a loop of your own
    `numpy_state` goes into the checkpoint:

    ```python
    environment = NumpyStateWrapper(suite_gym.load("CartPole-v1"))
    checkpoint = tf.train.Checkpoint(environment=environment.numpy_state)
    ```

    Let it be the outermost wrapper: restoring replaces the environment inside where
    that was saved as a whole (without what pygame drew on). Checkpoints hold pickles,
    so restore only your own.
    """

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`.

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
        """The state, for `tf.train.Checkpoint`, of the time of each save or restore.

        Its one array, `environment`, holds the pickled state as uint8.
        """
        return self._numpy_state

    def get_state(self) -> Any:
        """Returns all that `set_state` needs to go on from here; it can be pickled.

        Raises:
          TypeError: If the environment cannot be pickled any more.
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
    """Takes the environment's state when saved, and gives it back when restored."""

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
    """Leaves out what pygame draws on, which cannot be pickled.

    It is None afterwards, as before the first picture.
    """

    def persistent_id(self, value: Any) -> str | None:
        module = type(value).__module__
        return "drawing" if module.partition(".")[0] == "pygame" else None


class _Pickler(_WithoutDrawing, pickle.Pickler):
    pass


class _CloudPickler(_WithoutDrawing, cloudpickle.Pickler):
    """Takes lambdas, and classes inside of functions, too."""


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
