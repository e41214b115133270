"""The worker process of a `ProcessPyEnvironment`, which serves an environment.

The worker does not import TensorFlow, unless the constructor of the environment does.
"""

from __future__ import annotations

import inspect
import os
import pickle
from typing import Any

import cloudpickle

from tfrl.environments import py_environment
from tfrl.environments.workers import process_arrays
from tfrl.system import channel as channels
from tfrl.system import child_errors

# Requests. CALL, ACCESS and APPLY have pickled arguments and a pickled RESULT.
CALL = 2
ACCESS = 3
APPLY = 4
ATTACH = 5
STEP = 6
RESET = 7
CLOSE = 8

# Answers. SHARED means that the time step is in the shared memory.
RESULT = 2
SHARED = 3


def serve(pickled_constructor: bytes, channel: channels.Channel) -> None:
    """Makes the environment, sends its specs, and answers requests until CLOSE.

    Args:
      pickled_constructor: The constructor of the environment, pickled by cloudpickle.
      channel: The channel to the parent.

    Raises:
      TypeError: If the constructor does not return an environment.
      ValueError: If it returns a batched environment.
    """
    environment = cloudpickle.loads(pickled_constructor)()
    if not isinstance(environment, py_environment.PyEnvironment):
        raise TypeError(
            f"env_constructor: returned {environment!r} of type "
            f"{type(environment).__name__}, expected a PyEnvironment; wrap a Gymnasium "
            "environment with suite_gym.wrap_env first."
        )
    if environment.batched:
        raise ValueError(
            f"env_constructor: returned the batched environment {environment!r}, "
            "expected a single one; give the constructors of its members."
        )
    specs = (environment.action_spec(), environment.time_step_spec())
    channel.send(channels.READY, cloudpickle.dumps(specs))
    worker = _Worker(environment, channel, specs)
    while worker.answer(*channel.receive()):
        pass


def look_up(environment: py_environment.PyEnvironment, name: str) -> tuple[bool, Any]:
    """Returns `(True, None)` for a method, else `(False, value)`."""
    value = getattr(environment, name)
    return (True, None) if inspect.ismethod(value) else (False, value)


class _Worker:
    """Answers requests about the environment."""

    def __init__(
        self,
        environment: py_environment.PyEnvironment,
        channel: channels.Channel,
        specs: tuple[Any, Any],
    ):
        self._environment = environment
        self._channel = channel
        self._specs = specs
        self._member: Any = None

    def answer(self, kind: int, payload: bytes) -> bool:
        """Answers one request, and returns whether to wait for another."""
        try:
            answer = self._carry_out(kind, payload)
        except Exception as error:
            self._channel.send(channels.RAISED, child_errors.payload_of(error))
        else:
            self._channel.send(*answer)
        return kind != CLOSE

    def _carry_out(self, kind: int, payload: bytes) -> tuple[int, bytes]:
        if kind == STEP:
            return self._tell(self._environment.step(self._member.read_action()))
        if kind == RESET:
            return self._tell(self._environment.reset())
        return RESULT, cloudpickle.dumps(self._evaluate(kind, payload))

    def _tell(self, time_step: Any) -> tuple[int, bytes]:
        if self._member is not None and self._member.write_time_step(time_step):
            return SHARED, b""
        return RESULT, cloudpickle.dumps(time_step)

    def _evaluate(self, kind: int, payload: bytes) -> Any:
        if kind == CLOSE:
            return self._environment.close()
        if kind == ATTACH:
            return self._attach(*pickle.loads(payload))
        name, args, kwargs = pickle.loads(payload)
        if kind == ACCESS:
            return getattr(self._environment, name)
        if kind == APPLY:
            return name(self._environment, *args, **kwargs)
        return getattr(self._environment, name)(*args, **kwargs)

    def _attach(self, member: int, batch_size: int) -> None:
        fd = self._channel.receive_file()
        try:
            batch = process_arrays.SharedBatch(fd, *self._specs, batch_size)
        finally:
            os.close(fd)
        self._member = process_arrays.SharedMember(batch, member)
