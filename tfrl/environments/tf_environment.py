"""`TFEnvironment`, the base class of environments that speak tensors."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfrl.trajectories import time_step as ts


class TFEnvironment(abc.ABC):
    """An environment that takes and returns nests of tensors, `[B, ...]`.

    It is always batched, also for one member, and works eagerly and inside of a
    `tf.function`, where its calls run in the order in which they were written. Time is
    as in `PyEnvironment`, member by member: after a LAST step `step` ignores that
    member's action and returns its next FIRST.
    """

    def __init__(
        self, time_step_spec: Any = None, action_spec: Any = None, batch_size: int = 1
    ):
        """Keeps the specs.

        Args:
          time_step_spec: The `TimeStep` of nests of tensor specs, without the batch.
          action_spec: The nest of tensor specs of the actions, without the batch.
          batch_size: How many members step at once.
        """
        self._time_step_spec = time_step_spec
        self._action_spec = action_spec
        self._batch_size = batch_size

    def time_step_spec(self) -> Any:
        """The `TimeStep` of specs of what `reset` and `step` return, without `B`."""
        return self._time_step_spec

    def action_spec(self) -> Any:
        """The nest of specs of the actions, without the batch."""
        return self._action_spec

    def observation_spec(self) -> Any:
        """The nest of specs of the observations, without the batch."""
        return self.time_step_spec().observation

    def reward_spec(self) -> Any:
        """The nest of specs of the rewards, without the batch."""
        return self.time_step_spec().reward

    @property
    def batched(self) -> bool:
        """Whether there is a batch dimension: always."""
        return True

    @property
    def batch_size(self) -> int:
        """How many members step at once."""
        return self._batch_size

    @property
    def calls_python(self) -> bool:
        """Whether its calls run Python code on the host, outside of TensorFlow's graph.

        A loop that XLA compiles then needs a way from its program to Python. False
        unless a subclass says otherwise.
        """
        return False

    def current_time_step(self) -> ts.TimeStep:
        """Returns the current time step; resets before if there is none."""
        return self._current_time_step()

    def reset(self) -> ts.TimeStep:
        """Starts a new episode of every member and returns the FIRST steps."""
        return self._reset()

    def step(self, action: Any) -> ts.TimeStep:
        """Applies the actions and returns the next time steps.

        Args:
          action: A nest of tensors like `action_spec()`, `[B, ...]`.
        """
        return self._step(action)

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns a picture of the environment.

        Raises:
          NotImplementedError: If the environment cannot be rendered.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.render: this environment does not support it."
        )

    def close(self) -> None:  # noqa: B027
        """Frees what the environment holds."""

    def get_state(self) -> Any:
        """Returns all that `set_state` needs to continue from here.

        Raises:
          NotImplementedError: If the environment's state cannot be saved.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.get_state: this environment does not support it."
        )

    def set_state(self, state: Any) -> None:
        """Brings the environment back to where `get_state` was called.

        Raises:
          NotImplementedError: If the environment's state cannot be restored.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.set_state: this environment does not support it."
        )

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the environment's own exception instead of TensorFlow's wrapper of it.

        Whoever calls a graph that steps the environment does so inside of
        `with environment.reraise():`. An environment without Python inside has nothing
        to add, so here it changes nothing.
        """
        yield

    def has_failed(self) -> tf.Tensor:
        """Whether the environment has raised inside of a program that XLA compiled.

        A bool scalar. Such a program cannot stop by itself; a loop in it should do so
        then, and the exception comes at the end of `reraise`.
        """
        return tf.constant(False)

    @abc.abstractmethod
    def _current_time_step(self) -> ts.TimeStep:
        """See `current_time_step`."""

    @abc.abstractmethod
    def _reset(self) -> ts.TimeStep:
        """See `reset`."""

    @abc.abstractmethod
    def _step(self, action: Any) -> ts.TimeStep:
        """See `step`."""
