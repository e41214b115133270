"""The base class of all training loops: calls of a program, counters, checkpoints.

A loop runs whole iterations inside calls of one `tf.function`. Between calls it is a
plain object whose state a checkpoint saves. `CollectingLoop` adds the environment.
"""

from __future__ import annotations

import abc
import contextlib
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import garbage
from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, compile_errors, fast_function
from tfrl.environments.boundary import running_steps
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.savers import finite
from tfrl.system import interrupts
from tfrl.train.loops import (
    diagnostics,
    iteration_transform,
    loop_checks,
    placement,
)
from tfrl.utils import call_sizes
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    from tfrl.typing import types


class IterationInfo(NamedTuple):
    """The counters after a call of `TrainingLoop.run`, and the call's mean loss.

    Attributes:
      iteration: The total number of iterations.
      train_steps: The total number of the agent's updates.
      environment_steps: The total number of steps, summed over all environments.
      episodes: The total number of finished episodes.
      average_return: Mean return of the last 10 finished episodes. NaN, and the steps
        and episodes 0, for a loop without an environment.
      loss: Mean loss of the call's updates.
    """

    iteration: int
    train_steps: int
    environment_steps: int
    episodes: int
    average_return: float
    loss: float


class TrainingLoop(tf.Module, abc.ABC):
    """A loop that trains an agent in calls of about half a second, for `train.Run`.

    A subclass implements `_advance`. Apart from variables, the data that an iteration
    passes to the next one is the loop's position, a tuple of nests of tensors. By
    default it is empty.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffer_lib.ReplayBuffer | None,
        seed: int | None,
        jit_compile: bool,
        placed: placement.Placement,
    ) -> None:
        """Creates the loop.

        Args:
          agent: The agent.
          replay_buffer: The buffer of the experience, or None.
          seed: Seed of all random numbers of the loop; None draws one.
          jit_compile: Whether XLA compiles the whole call into one program.
          placed: The devices of the loop.
        """
        super().__init__()
        self._placement = placed
        self._agent = agent
        self._replay_buffer: Any = replay_buffer
        if seed is None:
            seed = seeds.draw_number()
        with tf.device(placed.collecting_device):
            self._seed = tf.Variable(seed, dtype=tf.int64, trainable=False, name="seed")
            self._iteration = tf.Variable(0, dtype=tf.int64, trainable=False)
            # Steps of the loop, from which the random numbers derive.
            self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
            self._zero_loss = tf.constant(0.0, tf.float64)
        self._is_started = False
        self._compiles = False
        running_steps.register(self)
        self._call_sizes = call_sizes.CallSizes()
        self._transform = iteration_transform.IterationTransform()
        self._weights = LostWeights(agent)
        self.diagnostics = diagnostics.Diagnostics(
            agent, self.can_draw_for_log, self.draw_for_log
        )
        self._jit_compile = jit_compile
        self._call: Any = fast_function.fast_function(
            self._do_iterations,
            label=type(agent).__name__,
            autograph=False,
            jit_compile=(jit_compile and not placed.is_split) or None,
        )

    @property
    def agent(self) -> tf_agent.TFAgent:
        """The agent that is trained."""
        return self._agent

    @property
    def iteration(self) -> int:
        """The total number of iterations so far."""
        return _as_int(self._iteration)

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save so that a run can be resumed, by name."""
        items = {
            "agent": self._agent,
            "seed": self._seed,
            "iteration": self._iteration,
            "step": self._step,
        }
        if include_replay_buffer and self._replay_buffer is not None:
            items["replay_buffer"] = self._replay_buffer
        return items

    def has_position(self) -> bool:
        """Whether there is a position to continue from.

        A restored loop has none if its environment could not save its state.
        """
        return True

    def run(self, num_iterations: int) -> IterationInfo:
        """Does `num_iterations` iterations, in compiled calls of about half a second.

        The results do not depend on the division into calls, and iterations that take
        less than half a second together are one call. Ctrl-C ends the run after the
        current call with a KeyboardInterrupt; the loop can then be run again, and
        continues from there. If the environment does not return, a second Ctrl-C ends
        the process.

        Raises:
          Exception: The exception that the environment or the function of a
            `host_observer` raised. Earlier iterations keep their effect. The loop can
            be run again, and then begins a new episode.
          ValueError: An observer runs in Python alone.
          NotImplementedError: XLA cannot compile the loop, for instance a `tf.print`.
          replay_service.ReverbError: The buffer's server failed, for instance it died.
          KeyboardInterrupt: Ctrl-C was pressed.
          tf.errors.InvalidArgumentError: A check inside the call failed, for instance
            the loss or its gradients were not finite. In a compiled loop the agent's
            weights are then lost; restore a checkpoint.
        """
        self._is_started = False
        loss_sum, done = self._zero_loss, 0
        with interrupts.deferred(running_steps.describe) as is_requested:
            while not is_requested():
                size, loss_sum = self._one_call(num_iterations - done, loss_sum)
                done += size
                if done >= num_iterations and self._is_started:
                    break
        return self.info(float(loss_sum) / done if done else float("nan"))

    def run_call(self, most_iterations: int) -> IterationInfo:
        """Does iterations in one call of about half a second.

        The first call only traces and compiles the program. Calls that collect initial
        experience do no iterations either.

        Args:
          most_iterations: The largest number of iterations.

        Raises:
          Exception: See `run`.
        """
        size, loss_sum = self._one_call(most_iterations, self._zero_loss)
        return self.info(float(loss_sum) / size if size else float("nan"))

    def _one_call(
        self, most_iterations: int, loss_sum: tf.Tensor
    ) -> tuple[int, tf.Tensor]:
        """Does at most `most_iterations` iterations in one call.

        Returns their number, and `loss_sum` plus their losses.
        """
        device = tf.device(self._placement.collecting_device)
        with loop_checks.short_assertions(), self._own_errors(), device:
            if not (self._is_started and self.has_position()):
                self._is_started = self._start()
                if not self._is_started:
                    return 0, loss_sum
            is_traced = self.trace_count() > 0
            size = self._call_sizes.choose(most_iterations) if is_traced else 0
            self._announce(size)
            started = time.monotonic()
            with contextlib.nullcontext() if is_traced else self._compiling():
                position, loss_sum = self._call(
                    self._take_position(), tf.constant(size, tf.int64), loss_sum
                )
        self._set_position(position)
        self._iteration.assign_add(size)
        loss = float(loss_sum)  # Waits for the device.
        if size > 0:
            self._call_sizes.measured(size, time.monotonic() - started)
            if self._jit_compile:
                self._check_call(loss, size)
        return size, loss_sum

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        """The context of the first call, which only traces and compiles."""
        self._compiles = True
        try:
            with garbage.uncollected():
                yield
        finally:
            self._compiles = False

    def running_step(self) -> str | None:
        """Returns what a signal has to wait for, other than an environment; or None."""
        return "the compilation of the training loop" if self._compiles else None

    def info(self, loss: float = float("nan")) -> IterationInfo:
        """Returns the current counters and average return, with the given loss."""
        return IterationInfo(
            iteration=self.iteration,
            train_steps=_as_int(self._agent.train_step_counter),
            environment_steps=0,
            episodes=0,
            average_return=float("nan"),
            loss=loss,
        )

    def describe_devices(self) -> str:
        """Returns where the parts run; empty if there is nothing but one CPU."""
        return self._placement.describe()

    @property
    def activity(self) -> str:
        """The work of the next call of `run_call`, for reports of the progress."""
        if self.trace_count():
            return "training"
        made = "compiling" if self._jit_compile else "tracing"
        return f"{made} the training loop"

    def replay_size(self) -> int | None:
        """Returns the number of frames in the replay buffer.

        Returns None if the loop keeps no experience from one iteration to the next.
        """
        return None

    def python_seconds(self) -> float:
        """Returns the seconds in the environment's Python code; see `TFEnvironment`."""
        return 0.0

    def priority_evenness(self) -> float | None:
        """Returns the share of the frames that priorities let count.

        Returns None without a prioritized buffer in this process.
        """
        measure = getattr(self._replay_buffer, "priority_evenness", None)
        return None if measure is None else float(measure())

    def can_draw_for_log(self) -> bool:
        """Whether `draw_for_log` can be called now."""
        return False

    def draw_for_log(self) -> types.NestedTensor | None:
        """Returns a batch drawn as in training, in a graph; has no effect on training.

        A loop whose `can_draw_for_log` may be True overrides this method.
        """
        raise NotImplementedError(f"{type(self).__name__}.draw_for_log")

    @property
    def most_steps_per_iteration(self) -> int | None:
        """The largest number of steps of an iteration, summed over all environments.

        0 for a loop without an environment; None if there is no bound, as for
        iterations that collect whole episodes.
        """
        return 0

    def trace_count(self) -> int:
        """Returns the number of traces of `run`'s graph; 1 after the first call."""
        return self._call.experimental_get_tracing_count()

    def agent_is_finite(self) -> tf.Tensor:
        """Returns whether the numbers of the agent's variables are finite, a bool."""
        return self._weights.are_finite()

    @contextlib.contextmanager
    def transformed_by(
        self, transform: iteration_transform.IterationTransform
    ) -> Iterator[None]:
        """Applies the parts of an iteration through `transform` in this context."""
        plain, self._transform = self._transform, transform
        try:
            yield
        finally:
            self._transform = plain

    @contextlib.contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Raises the exceptions of the loop's parts instead of TensorFlow's."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(compile_errors.explained())
            if self._replay_buffer is not None:
                stack.enter_context(self._replay_buffer.reraise())
            yield

    def _check_call(self, loss: float, num_iterations: int) -> None:
        """Raises the errors that a compiled call cannot raise itself.

        Args:
          loss: The call's mean loss.
          num_iterations: The number of iterations in the call.
        """
        self._weights.check(loss, num_iterations)

    def _start(self) -> bool:
        """Prepares the first iteration of a run.

        Returns whether the loop can iterate; if not, it must be called again.
        """
        return True

    def _announce(self, size: int) -> None:
        """Sends the number of the next iterations to processes that train together."""

    def _take_position(self) -> tuple[Any, ...]:
        """Returns the position and forgets it, in case the call fails."""
        return ()

    def _set_position(self, position: tuple[Any, ...]) -> None:
        """Sets the position to continue from."""

    def _has_failed(self) -> tf.Tensor:
        """Returns a bool scalar: whether the iterations of this call must end."""
        return tf.constant(False)

    @abc.abstractmethod
    def _advance(self, position: tuple[Any, ...]) -> tuple[tuple[Any, ...], tf.Tensor]:
        """Does one iteration in a graph; returns the next position, and the loss."""

    def _do_iterations(
        self, position: tuple[Any, ...], num_iterations: tf.Tensor, loss_sum: tf.Tensor
    ) -> tuple[tuple[Any, ...], tf.Tensor]:
        """Does the iterations; adds their losses, float64, to `loss_sum`.

        The calls of one run pass the sum on, so that the order of the summation does
        not depend on the sizes of the calls.
        """
        limit = tf.cast(num_iterations, tf.int32)

        def goes_on(i: tf.Tensor, _: Any) -> tf.Tensor:
            # A plain graph ends with the error of the Python code that it called. The
            # loop's condition is one operation on the host, which waits for no GPU.
            return (i < limit) & ~self._has_failed() if self._jit_compile else i < limit

        def body(i: tf.Tensor, carried: tuple[Any, ...]) -> tuple[tf.Tensor, Any]:
            position, loss_sum = carried
            position, loss = self._advance(position)
            return i + 1, (position, loss_sum + tf.cast(loss, tf.float64))

        # Each iteration reads the results of the one before, so they do not run in
        # parallel.
        with accelerators.graph_for(self._placement.device):
            _, (position, loss_sum) = accelerators.while_loop(
                goes_on,
                body,
                (tf.constant(0), (position, loss_sum)),
                parallel_iterations=1,
            )
        return position, loss_sum

    def _step_seed(self) -> tf.Tensor:
        """Counts a step, and returns its stateless seed, int64 `[2]`."""
        self._step.assign_add(1)
        return self._seed_after(0)

    def _seed_after(self, num_steps: tf.Tensor | int) -> tf.Tensor:
        """Returns the stateless seed of a step that is not counted yet, int64 `[2]`.

        Args:
          num_steps: The number of steps from the last counted one, int64.
        """
        return tf.stack([self._seed.read_value(), self._step.read_value() + num_steps])


class LostWeights:
    """Looks for lost weights after a compiled call of a loop.

    XLA has no assertions that could prevent an update with gradients that are not
    finite.
    """

    def __init__(self, agent: tf_agent.TFAgent) -> None:
        """Records the variables that are finite now; some agents have infinite numbers.

        Args:
          agent: The agent.
        """
        self._agent = agent
        self._watched = [v for v in agent.variables() if finite.is_finite(v)]
        # A graph of its own: XLA would compile a test for each shape of a variable.
        self._find = fast_function.fast_function(self.are_finite, autograph=False)

    def are_finite(self) -> tf.Tensor:
        """Returns whether the variables are still finite, a bool scalar."""
        return finite.all_finite(self._watched)

    @garbage.uncollected()
    def check(self, loss: float, num_iterations: int) -> None:
        """Raises an error if the loss of a call, or a weight after it, is not finite.

        Args:
          loss: The sum or the mean of the losses.
          num_iterations: The number of iterations in the call.

        Raises:
          tf.errors.InvalidArgumentError: The message says whether the weights are
            finite.
        """
        if math.isfinite(loss) and self._find():
            return
        held = self._agent.variables()
        lost = sum(not finite.is_finite(variable) for variable in held)
        state = (
            f"{lost} of the agent's {len(held)} variables hold NaN or infinity now, so "
            "the weights are lost"
            if lost
            else "the weights are still finite, but were trained with that loss"
        )
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            f"experience: a {type(self._agent).__name__} loss in the last "
            f"{num_iterations} iterations was not finite, or its gradients were not, "
            f"expected numbers; {state}. Look for NaN, infinite or huge observations "
            "and rewards, or lower the learning rate, and resume from a checkpoint; "
            "jit_compile=False stops before the update.",
        )


def _as_int(variable: tf.Variable) -> int:
    # It goes through a tensor, because int() refuses the variables of several replicas.
    return int(tf.convert_to_tensor(variable))
