"""`TFEnvironment`, the base class of environments that take and return tensors."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation import conversion
from tfrl.environments.boundary import action_arrays
from tfrl.specs import matching
from tfrl.trajectories import time_step as ts
from tfrl.typing import types

conversion.spare_modules()


class TFEnvironment(abc.ABC):
    """An environment that takes and returns nests of tensors, `[B, ...]`.

    It is always batched, even with one member. It works eagerly, and in a `tf.function`
    its calls run in program order. Each member follows the rules of
    `PyEnvironment`: after its LAST step, `step` ignores its action and returns its next
    FIRST step.
    """

    def __init__(
        self, time_step_spec: Any = None, action_spec: Any = None, batch_size: int = 1
    ):
        """Stores the specs.

        Args:
          time_step_spec: The `TimeStep` of nests of tensor specs, without the batch.
          action_spec: The nest of tensor specs of the actions, without the batch.
          batch_size: The number of members.

        Raises:
          ValueError: If an array of the specs has no elements.
        """
        matching.check_not_empty(time_step_spec, "time_step_spec")
        matching.check_not_empty(action_spec, "action_spec")
        self._time_step_spec = time_step_spec
        self._action_spec = action_spec
        self._batch_size = batch_size

    @property
    def is_seeded(self) -> bool:
        """Whether the environment was given a seed, or draws no random numbers."""
        return True

    def seed(self, seed: Any) -> Any:
        """Seeds the environment's random numbers.

        Raises:
          NotImplementedError: If the environment cannot be seeded.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.seed: the environment cannot be seeded, expected "
            "a method seed(seed); write one."
        )

    def time_step_spec(self) -> ts.TimeStep:
        """The `TimeStep` of specs of the time steps, without the batch."""
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
        """Always True: there is a batch dimension."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of members."""
        return self._batch_size

    @property
    def is_bandit(self) -> bool:
        """Whether each step is a whole round of a bandit.

        Then `step` never resets: it returns a LAST step with the reward of the action
        and the observation of the next round. False unless a subclass says otherwise.
        """
        return False

    @property
    def held_fields(self) -> tuple[str, ...]:
        """The fields of the time step that are in variables of TensorFlow.

        `current_time_step` reads them as `step` returned them, bit for bit, so compiled
        loops read them there, and do not carry them, too. None unless a subclass says
        otherwise.
        """
        return ()

    @property
    def calls_python(self) -> bool:
        """Whether its calls run Python code on the host, outside of TensorFlow's graph.

        A loop that XLA compiles then needs a way from its program to Python. False
        unless a subclass says otherwise.
        """
        return False

    @property
    def supports_overlap(self) -> bool:
        """Whether `send` and `receive` step while other work of the program runs.

        False unless a subclass says otherwise.
        """
        return False

    @property
    def python_seconds(self) -> float:
        """The seconds that steps and resets have spent in Python code: 0 without it."""
        return 0.0

    def current_time_step(self) -> types.TensorTimeStep:
        """Returns the current time step, after a reset if there is none."""
        return self._current_time_step()

    def reset(self) -> types.TensorTimeStep:
        """Starts a new episode of every member and returns the FIRST steps."""
        return self._reset()

    def step(self, action: Any) -> types.TensorTimeStep:
        """Applies the actions and returns the next time steps.

        Args:
          action: A nest of tensors like `action_spec()`, `[B, ...]`.
        """
        return self._step(action)

    def send(self, action: Any) -> tf.Tensor:
        """Begins a step, in a graph; `receive` must be the next call.

        XLA orders work by data alone. So work that shall run meanwhile must use the
        result, as the bound of a loop does.

        Args:
          action: A nest of tensors like `action_spec()`, `[B, ...]`.

        Returns:
          An int64 scalar, 0, which is known when the step has begun.

        Raises:
          NotImplementedError: If `supports_overlap` is False.
        """
        del action
        raise self._no_overlap("send")

    def receive(self, worked: tf.Tensor) -> types.TensorTimeStep:
        """Ends the step that `send` began, in a graph; returns the next time steps.

        Args:
          worked: A tensor of any shape, computed when the work beside the step is done.

        Raises:
          NotImplementedError: If `supports_overlap` is False.
        """
        del worked
        raise self._no_overlap("receive")

    def _no_overlap(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__}.{name}: got an environment whose steps run inside "
            "of the program, expected one with supports_overlap; call step."
        )

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute of all members, such as their difficulty, between steps.

        Args:
          name: The attribute's name.
          value: Its value.
          calls: Whether `name` is a method instead, which is called with `value`.

        Raises:
          AttributeError: There is no such attribute or method.
          NotImplementedError: The environment has no attributes to set.
        """
        raise NotImplementedError(
            f"change: got {name!r} for a {type(self).__name__}, expected an "
            "environment in Python, or one whose Dynamics have levels."
        )

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns a picture of the environment.

        Raises:
          NotImplementedError: If the environment cannot be rendered.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.render: this environment does not support it."
        )

    def close(self) -> None:  # noqa: B027
        """Frees the environment's resources."""

    def get_state(self) -> Any:
        """Returns the state of the environment, for `set_state`.

        Raises:
          NotImplementedError: If the environment's state cannot be saved.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.get_state: this environment does not support it."
        )

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned.

        Raises:
          NotImplementedError: If the environment's state cannot be restored.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.set_state: this environment does not support it."
        )

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the environment's own exception instead of TensorFlow's wrapper of it.

        Call a graph that steps the environment inside `with environment.reraise():`.
        Environments written in TensorFlow have no exceptions of their own, so by
        default it changes nothing.
        """
        yield

    def has_failed(self) -> tf.Tensor:
        """Whether the environment has raised in a program compiled by XLA.

        Returns a bool scalar. Such a program does not stop at an exception. A loop in
        it should end if this is True; `reraise` then raises the exception.
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


def check_state(state: Any, expected: Sequence[Any]) -> None:
    """Raises a ValueError unless a state is a list of arrays of the expected shapes."""
    shapes = [tuple(each.shape) for each in expected]
    is_list = isinstance(state, list | tuple)
    given = [np.shape(x) for x in state] if is_list else type(state).__name__
    if given != shapes:
        raise ValueError(
            f"state: got arrays of the shapes {given}, expected {shapes}; give what "
            "get_state of an environment like this one has returned."
        )


def flatten(action: Any, spec: Any, batch_size: int) -> list[tf.Tensor]:
    """Returns the tensors of `action` in the order and with the dtypes of its specs.

    Args:
      action: A nest like `spec` of tensors, or values that convert to tensors,
        `[B, ...]`; a number without the batch if there is one member.
      spec: A nest of tensor specs, without the batch.
      batch_size: The size of the batch, `B`.

    Raises:
      ValueError: If the structure or a shape differs, or a value does not convert.
      TypeError: If a dtype is of another kind, such as floats for integers.
    """
    return [
        _as_tensor(matching.join("action", *path), leaf, leaf_spec, batch_size)
        for (path, leaf_spec), leaf in zip(
            tree.flatten_with_path(spec),
            action_arrays.leaves(action, spec),
            strict=True,
        )
    ]


def _as_tensor(where: str, value: Any, spec: Any, batch_size: int) -> tf.Tensor:
    try:
        tensor = tf.convert_to_tensor(value, dtype_hint=spec.dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: got {value!r}, expected a tensor for {spec} ({error}); pack the "
            "actions like the spec."
        ) from None
    dtypes = [np.dtype(t.dtype.as_numpy_dtype) for t in (tensor, spec)]
    if action_arrays.can_cast(*dtypes):
        tensor = tf.cast(tensor, spec.dtype)
    if batch_size == 1 and tensor.shape.rank == 0 and spec.shape.rank == 0:
        tensor = tensor[tf.newaxis]
    remedy = f"cast the action, or follow {spec}, with the batch in front"
    matching.check(
        where, tensor, spec, (batch_size,), remedy=remedy, dtype_error=TypeError
    )
    return tensor
