"""`TFPyEnvironment` makes a `PyEnvironment` take and return tensors.

In a graph, a step is one `tf.numpy_function` for the whole batch, so a loop of steps
can be a `tf.function`; an eager step calls Python directly.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import pool
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation import compile_errors, context, words
from tfrl.compilation.python_calls import host_calls
from tfrl.environments import (
    batched_py_environment,
    py_environment,
    tf_environment,
)
from tfrl.environments.boundary import (
    action_arrays,
    running_steps,
    stepping_thread,
    time_step_checker,
)
from tfrl.specs import array_spec, bounds, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import mixins


class TimeStepArrays:
    """Holds the latest time step that has passed the checks.

    A time step is written to the memory from which it is passed to a program, so it is
    copied once, and all of its floats are checked together.
    """

    def __init__(
        self, checker: time_step_checker.TimeStepChecker, layout: words.WordLayout
    ):
        """Makes the arrays.

        Args:
          checker: Checks the time steps.
          layout: The layout in which programs read the flat time step, `[B, ...]`.
        """
        self._checker = checker
        # A time step that does not match its spec does not change the one before.
        self._latest, self._next = _Held.make(layout), _Held.make(layout)
        self.is_set = False

    @property
    def stored(self) -> list[np.ndarray]:
        """The latest time step in the layout of programs; an update overwrites it."""
        return self._latest.stored

    def copies(self) -> list[np.ndarray]:
        """Returns copies of the arrays of the latest time step, flat."""
        return [array.copy() for array in self._latest.values]

    def update(self, time_step: ts.TimeStep, step: int) -> list[np.ndarray]:
        """Checks a time step, makes it the latest, and returns `stored`.

        Args:
          time_step: The time step that the environment returned.
          step: The number of the step, for messages.

        Raises:
          ValueError: If the time step does not match its spec.
        """
        held = self._next
        self._checker.write(time_step, step, held.values, held.finite_checks)
        self._next, self._latest = self._latest, held
        self.is_set = True
        return held.stored

    def set(self, flat: Sequence[np.ndarray] | None) -> None:
        """Restores the arrays that `copies` returned; None forgets the time step.

        Raises:
          ValueError: If there are more arrays, or fewer, than in a time step.
        """
        if flat is not None:
            for array, value in zip(self._latest.values, flat, strict=True):
                array[...] = value
        self.is_set = flat is not None


class _Held(NamedTuple):
    """The arrays of one time step; see `words.WordArrays`."""

    stored: list[np.ndarray]
    values: list[np.ndarray]
    finite_checks: list[Callable[[], bool]]

    @classmethod
    def make(cls, layout: words.WordLayout) -> _Held:
        arrays = layout.make_arrays()
        checks = [bounds.make_finite_check(array) for array in arrays.floats]
        return cls(arrays.stored, arrays.values, checks)


# Takes the flat action, and returns the next time step in the layout of programs.
_Advance = Callable[..., list[np.ndarray]]


class TFPyEnvironment(mixins.Forwards, tf_environment.TFEnvironment):
    """Steps a Python environment from TensorFlow, eagerly or in a `tf.function`.

    An unbatched environment becomes a batch of one. Every time step is checked against
    the specs. Attributes that are not found here are looked up in the Python
    environment.

    An eager call raises the environment's own exceptions. A graph can only raise a
    `tf.errors.OpError` with their text; inside `with environment.reraise():` the caller
    of the graph gets the environment's own exception.
    """

    def __init__(
        self,
        environment: (
            py_environment.PyEnvironment | Callable[[], py_environment.PyEnvironment]
        ),
        check_dims: bool = False,
        isolation: bool | int | pool.Pool = False,
    ):
        """Wraps `environment`.

        Args:
          environment: The environment, or a function that makes it, which is called on
            the thread of `isolation`.
          check_dims: Has no effect, and exists for TF-Agents; the shapes of actions are
            always checked.
          isolation: True makes one thread that calls the environment, for environments
            that must stay on one thread; a number is the number of threads. A thread
            pool calls the environment on its own threads; the caller closes the pool.

        Raises:
          TypeError: If `environment` or `isolation` has another type.
          ValueError: If an array of the environment's specs has no elements.
        """
        del check_dims
        self._pool, self._owns_pool = _make_pool(isolation)
        if not isinstance(environment, py_environment.PyEnvironment):
            environment = self._make_environment(environment)
        self._env = environment
        self._batch_of_one = (
            None
            if environment.batched
            else batched_py_environment.BatchedPyEnvironment(
                [environment], multithreading=False
            )
        )
        super().__init__(
            tensor_spec.from_spec(environment.time_step_spec()),
            tensor_spec.from_spec(environment.action_spec()),
            environment.batch_size or 1,
        )
        checker = time_step_checker.TimeStepChecker.of(environment)
        self._name = py_environment.environment_name(environment)
        self._py_action_spec = array_spec.of_nest(environment.action_spec())
        self._has_single_action = isinstance(self._py_action_spec, array_spec.ArraySpec)
        # The index that removes the added batch from an action. Without one, it keeps
        # all axes.
        self._without_batch = ... if environment.batched else (0, ...)
        self._check_action = action_arrays.ActionChecker(
            self._name, self._py_action_spec, (self._batch_size,)
        )
        flat_specs = tf.nest.flatten(self._time_step_spec)
        self._is_flat = not any(map(tf.nest.is_nested, self._time_step_spec))
        # Each output of a Python call takes as long as a step of a small environment.
        self._layout = words.WordLayout(
            tensor_spec.add_outer_dim(flat_specs, self._batch_size), pads=True
        )
        self._latest = TimeStepArrays(checker, self._layout)
        self._num_steps = 0
        self._seconds = 0.0
        self._lock = threading.Lock()
        self._thread = stepping_thread.SteppingThread()
        self._channel = host_calls.CallChannel()
        running_steps.register(self)

    @property
    def is_bandit(self) -> bool:
        """Whether the Python environment is a bandit."""
        return self._env.is_bandit is True

    @property
    def calls_python(self) -> bool:
        """Whether its calls run Python code: always."""
        return True

    @property
    def supports_overlap(self) -> bool:
        """Whether it can step beside other work: always."""
        return True

    @property
    def python_seconds(self) -> float:
        """The seconds that steps and resets of the Python environment have taken."""
        return self._seconds

    @property
    def pyenv(self) -> py_environment.PyEnvironment:
        """The batched Python environment; a single one is `pyenv.envs[0]`."""
        return self._batch_of_one or self._env

    @property
    def envs(self) -> Any:
        """The Python environments in the batch, if it is one of Python environments."""
        return getattr(self.pyenv, "envs")  # noqa: B009

    @property
    def _envs(self) -> Any:
        """The same, as programs for TF-Agents reach them."""
        return self.envs

    @property
    def is_seeded(self) -> bool:
        """Whether the Python environment was given a seed."""
        return self._env.is_seeded

    def seed(self, seed: Any) -> Any:
        """Seeds the Python environment; see `PyEnvironment.seed`."""
        return self._call(self._env.seed, seed)

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the environment's own exception instead of a `tf.errors.OpError`.

        ```
        with environment.reraise():
            train_loop()  # a tf.function that steps the environment
        ```
        """
        try:
            with self._channel.raising(), compile_errors.explained():
                yield
        finally:
            # If the graph failed beside a step, nobody takes its result.
            if self._thread.is_busy:
                with contextlib.suppress(Exception):
                    self._thread.result()

    def has_failed(self) -> tf.Tensor:
        """See `TFEnvironment`."""
        return self._channel.has_failed()

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute of the Python environment; see `PyEnvironment.change`."""
        self._call(self._env.change, name, value, calls)

    def send(self, action: Any) -> tf.Tensor:
        """Begins a step on a thread of its own; see `TFEnvironment`."""
        flat = tf_environment.flatten(action, self._action_spec, self._batch_size)
        spec = tf.TensorSpec([], tf.int64)
        (begun,) = host_calls.call(
            self._py_send, flat, [spec], self._channel, name="send"
        )
        return begun

    def receive(self, worked: tf.Tensor) -> ts.TimeStep:
        """Waits for the step that `send` began; see `TFEnvironment`."""
        return self._run(self._py_receive, [worked], "receive")

    def running_step(self) -> str | None:
        """Returns the running step as text, such as "step 17 of CartPole-v1", or None.

        A reset counts as a step, as in the messages of errors.
        """
        if not self._lock.locked():
            return None
        # A process cannot be asked for its name while its step is running.
        return f"step {self._num_steps + 1:,} of {self._name}"

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns pictures, uint8 `[B, height, width, 3]`; None for mode "human".

        Raises:
          NotImplementedError: If the Python environment cannot be rendered, or XLA
            compiles the graph.
        """
        if not self._latest.is_set and tf.executing_eagerly():
            self.current_time_step()
        if mode == "human":
            self._call(self._env.render, mode)
            return None

        def render() -> np.ndarray:
            return np.asarray(self._call(self.pyenv.render, mode), np.uint8)

        if tf.executing_eagerly():
            return tf.convert_to_tensor(render())
        if context.in_xla_graph():
            raise NotImplementedError(
                "render: got a call in a program that XLA compiles, expected a call "
                "outside, because the size of the pictures is not known while "
                "compiling; render outside of it."
            )
        spec = tf.TensorSpec([self._batch_size, None, None, 3], tf.uint8)
        return host_calls.call(
            lambda: [render()], [], [spec], self._channel, name="render"
        )[0]

    def close(self) -> None:
        """Closes the Python environment, and the threads that were made for it."""
        self._call(self._env.close)
        if self._owns_pool and self._pool is not None:
            self._pool.close()
            self._pool.join()
            self._pool = None

    def get_state(self) -> Any:
        """Returns the Python environment's own state and the current time step.

        Raises:
          NotImplementedError: If the Python environment's state cannot be saved.
        """
        return {
            "environment": self._call(py_environment.capture_state, self._env),
            "flat_time_step": self._latest.copies() if self._latest.is_set else None,
            "num_steps": self._num_steps,
        }

    def set_state(self, state: Any) -> None:
        """Restores the state that `get_state` returned.

        Raises:
          NotImplementedError: If the Python environment's state cannot be restored.
        """
        self._call(py_environment.restore_state, self._env, state["environment"])
        self._latest.set(state["flat_time_step"])
        self._num_steps = state["num_steps"]

    def _current_time_step(self) -> ts.TimeStep:
        return self._run(self._py_current_time_step, [], "current_time_step")

    def _reset(self) -> ts.TimeStep:
        return self._run(self._py_reset, [], "reset")

    def _step(self, action: Any) -> ts.TimeStep:
        if tf.executing_eagerly():
            return self._run(self._py_step, self._check_action(action), "step")
        flat = tf_environment.flatten(action, self._action_spec, self._batch_size)
        return self._run(self._py_checked_step, flat, "step")

    def _run(self, function: _Advance, inputs: list[Any], name: str) -> ts.TimeStep:
        """Calls `function`, eagerly or in the graph; returns the latest time step."""
        if tf.executing_eagerly():
            self._channel.check()
            function(*inputs)
            # tf.convert_to_tensor takes twice as long.
            outputs = [tf.constant(x) for x in self._latest.copies()]
        else:
            specs = self._layout.stored_specs
            outputs = self._layout.from_words(
                host_calls.call(
                    function, inputs, specs, self._channel, self._truncation, name
                )
            )
        if self._is_flat:
            return ts.TimeStep(*outputs)
        return tf.nest.pack_sequence_as(self._time_step_spec, outputs)

    def _truncation(self) -> list[np.ndarray]:
        """Returns a truncated last time step, for a program that cannot stop."""
        truncated = self._layout.make_arrays()
        time_step = tf.nest.pack_sequence_as(self._time_step_spec, truncated.values)
        if self._latest.is_set:
            for array, latest in zip(
                truncated.values, self._latest.copies(), strict=True
            ):
                array[...] = latest
        time_step.step_type[...] = ts.StepType.LAST
        for reward in tf.nest.flatten(time_step.reward):
            reward[...] = 0
        time_step.discount[...] = 1
        return truncated.stored

    def _py_current_time_step(self) -> list[np.ndarray]:
        if py_environment.was_restored(self._env):
            # By somebody else than `set_state`, such as `NumpyStateWrapper`.
            restored = self._env._current_time_step
            # A batch whose members were never reset has the time step ().
            if not restored:
                return self._py_reset()
            return self._latest.update(restored, self._num_steps)
        return self._latest.stored if self._latest.is_set else self._py_reset()

    def _py_reset(self) -> list[np.ndarray]:
        return self._advance(self._env.reset)

    def _py_step(self, *flat_action: np.ndarray) -> list[np.ndarray]:
        return self._advance(self._env.step, flat_action)

    def _py_checked_step(self, *flat_action: np.ndarray) -> list[np.ndarray]:
        # In a graph, the numbers and some shapes are not known.
        return self._advance(self._env.step, flat_action, self._check_action.check_flat)

    def _py_send(self, *flat_action: np.ndarray) -> list[np.ndarray]:
        # Copies: a program uses the memory of its tensors again.
        self._thread.start(self._py_checked_step, *(a.copy() for a in flat_action))
        return [np.zeros([], np.int64)]

    def _py_receive(self, worked: np.ndarray) -> list[np.ndarray]:
        del worked
        return self._thread.result()

    def _advance(
        self,
        function: Callable[..., ts.TimeStep],
        flat_action: tuple[np.ndarray, ...] | None = None,
        check_action: Callable[[tuple[np.ndarray, ...]], None] | None = None,
    ) -> list[np.ndarray]:
        """Calls the environment, then checks and keeps the time step.

        Returns:
          The time step in the layout of programs; see `TimeStepArrays.stored`.

        Raises:
          RuntimeError: If another call is in progress.
        """
        alone = self._lock.acquire(False)
        try:
            if not alone:
                raise RuntimeError(
                    "TFPyEnvironment: got two calls at the same time, expected one "
                    "after the other, because an environment has one state; chain the "
                    "calls, or use one environment for each."
                )
            if check_action is not None:
                check_action(flat_action or ())
            arguments = (
                () if flat_action is None else (self._unflatten_action(flat_action),)
            )
            started = time.perf_counter()
            try:
                time_step = self._call(function, *arguments)
            except Exception as error:
                error.add_note(
                    f"This is from step {self._num_steps + 1:,} of {self._name}."
                )
                raise
            self._seconds += time.perf_counter() - started
            self._num_steps += 1
            return self._latest.update(time_step, self._num_steps)
        finally:
            if alone:
                self._lock.release()

    def _unflatten_action(self, flat: tuple[np.ndarray, ...]) -> Any:
        # Copies: the environment may keep them, and TensorFlow reuses the memory.
        if self._has_single_action:
            return flat[0][self._without_batch].copy()
        actions = [array[self._without_batch].copy() for array in flat]
        return tree.unflatten_as(self._py_action_spec, actions)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._pool is None:
            return function(*arguments)
        return self._pool.apply(function, arguments)

    def _make_environment(self, make: Any) -> py_environment.PyEnvironment:
        environment = self._call(make) if callable(make) else make
        if not isinstance(environment, py_environment.PyEnvironment):
            raise TypeError(
                f"environment: got {environment!r} of type "
                f"{type(environment).__name__}, expected a PyEnvironment or a function "
                "that makes one; wrap a Gymnasium environment with "
                "suite_gym.wrap_env first."
            )
        return environment


def _make_pool(isolation: Any) -> tuple[pool.Pool | None, bool]:
    """Returns the thread pool that calls the environment, and whether to close it."""
    if isinstance(isolation, pool.Pool):
        return isolation, False
    if not isinstance(isolation, int) or isolation < 0:
        raise TypeError(
            f"isolation: got {isolation!r}, expected True, False, a number of threads "
            "or a multiprocessing pool."
        )
    return (pool.ThreadPool(int(isolation)), True) if isolation else (None, False)
