"""The base class of training loops, with their state and their checkpoints.

A loop runs whole iterations (collect, add, sample, train) inside calls of one
`tf.function`. Between calls it is a plain object whose state a checkpoint saves: the
agent, the buffer, the metrics, the counters, and the environment where it can be saved.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import compile_errors, trace_counts
from tfrl.drivers import observers as observers_lib
from tfrl.environments import tf_environment
from tfrl.environments.boundary import running_steps
from tfrl.metrics import tf_metrics
from tfrl.policies import tf_policy
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.system import interrupts
from tfrl.train import (
    loop_checks,
    lost_weights,
    placement,
    position,
    run_transform,
)
from tfrl.trajectories import trajectory
from tfrl.utils import call_sizes, seeds


class IterationInfo(NamedTuple):
    """The counters after a call of `Loop.run`, and the call's mean loss.

    Attributes:
      iteration: The total number of iterations.
      train_steps: The total number of the agent's updates.
      environment_steps: The total number of steps, summed over all environments.
      episodes: The total number of finished episodes.
      average_return: Mean return of the last 10 finished episodes.
      loss: Mean loss of the call's updates.
    """

    iteration: int
    train_steps: int
    environment_steps: int
    episodes: int
    average_return: float
    loss: float


class Loop(tf.Module, abc.ABC):
    """Base class of the training loops; a subclass implements `iterate`.

    A subclass may set `supports_sweep` if its iterations apply all of their functions
    by `self._transform`.
    """

    # Whether `sweep` can run many copies of such a loop in one program.
    supports_sweep: bool = False
    # Whether collection fills the replay buffer; if not, training does.
    _collects_into_buffer = False

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffer_lib.ReplayBuffer | None,
        observers: Sequence[Callable[[Any], Any]],
        seed: int | None,
        jit_compile: bool | Literal["auto"],
    ) -> None:
        """Creates the loop.

        Args:
          environment: A `TFEnvironment`.
          agent: The agent, built from the environment's specs.
          replay_buffer: The buffer for experience, with the agent's `collect_data_spec`
            and the environment's batch size; None for a loop that keeps no experience.
          observers: Callables that take each batched `Trajectory` `[B, ...]`, such as
            metrics. They are part of the call's graph, so each must change a variable,
            or be a `host_observer`.
          seed: Seed of all random numbers of the loop. The random numbers of step n
            only depend on the seed and n, not on how the iterations are divided into
            calls. None draws a seed.
          jit_compile: Whether XLA compiles the whole call into one program. Compiling
            takes a few seconds; small networks are then several times faster. The
            results agree with those of the plain graph to float32's accuracy. XLA
            removes the checks inside the call, so the loop checks after the call that
            the losses and the agent's variables are finite. The program calls a Python
            environment on the CPU.
            "auto" compiles every loop that can be compiled. A loop cannot be compiled
            if its replay buffer is in a server, if its parts are on devices that one
            program cannot reach, or if its environment is in Python and compiled
            programs of this build of TensorFlow cannot call Python.

        Raises:
          ValueError: Specs or batch sizes do not match, or `jit_compile` is True and
            the loop cannot be compiled.
        """
        super().__init__()
        loop_checks.check_specs(environment, agent, replay_buffer)
        self._placement = placement.placement_of(
            agent.variables(), environment.calls_python
        )
        obstacle = jit_compile and loop_checks.obstacle_to_compilation(
            environment,
            replay_buffer,
            observers,
            self._placement,
            self._collects_into_buffer,
        )
        if obstacle and jit_compile is True:
            raise ValueError(f"jit_compile: got True for {obstacle}")
        jit_compile = not obstacle if jit_compile == "auto" else bool(jit_compile)
        self._environment = environment
        self._agent = agent
        self._replay_buffer: Any = replay_buffer
        if seed is None:
            seed = int(seeds.next_seed(seeds.make_generator())[0])
        with tf.device(self._placement.collecting_device):
            self._make_variables(seed)
            agent.collect_policy.prepare(environment.batch_size)
        self._observers: list[Callable[[Any], Any]] = [
            self._average_return,
            self._episodes,
            self._environment_steps,
            *observers,
        ]
        self._position = position.Position(environment)
        self._is_started = False
        self._call_sizes = call_sizes.CallSizes()
        self._transform = run_transform.RunTransform()
        self._weights = lost_weights.LostWeights(agent)
        self._jit_compile = jit_compile
        self._call: Any = tf.function(
            trace_counts.of_one_object(self._iterations),
            autograph=False,
            jit_compile=(jit_compile and not self._placement.is_split) or None,
        )

    def _make_variables(self, seed: int) -> None:
        """Makes the metrics, the counters and the seed."""
        self._average_return = tf_metrics.AverageReturnMetric(
            batch_size=self._environment.batch_size
        )
        self._episodes = tf_metrics.NumberOfEpisodes()
        self._environment_steps = tf_metrics.EnvironmentSteps()
        self._seed = tf.Variable(seed, dtype=tf.int64, trainable=False, name="seed")
        self._iteration = tf.Variable(0, dtype=tf.int64, trainable=False)
        # Steps of the batched environment, from which the random numbers derive.
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._zero_loss = tf.constant(0.0, tf.float64)

    @property
    def agent(self) -> tf_agent.TFAgent:
        """The agent that is trained."""
        return self._agent

    @property
    def environment(self) -> tf_environment.TFEnvironment:
        """The environment in which the loop collects experience."""
        return self._environment

    @property
    def calls_python(self) -> bool:
        """Whether the environment or an observer calls Python at each step."""
        return self._environment.calls_python or any(
            map(observers_lib.calls_python, self._observers)
        )

    @property
    def samples_from_dataset(self) -> bool:
        """Whether an iteration reads a tf.data pipeline, which XLA cannot compile."""
        return False

    @property
    def iteration(self) -> int:
        """The total number of iterations so far."""
        return int(self._iteration)

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save so that a run can be resumed, by name.

        The states of the environment and of the policy are included if the environment
        can save its state. Otherwise a restored loop begins a new episode, which the
        buffer records as a cut, never as a transition.
        """
        items = {
            "agent": self._agent,
            "average_return": self._average_return,
            "episodes": self._episodes,
            "environment_steps": self._environment_steps,
            "observers": [o for o in self._observers if isinstance(o, tf.Module)],
            "seed": self._seed,
            "iteration": self._iteration,
            "step": self._step,
            "position": self._position,
        }
        if include_replay_buffer and self._replay_buffer is not None:
            items["replay_buffer"] = self._replay_buffer
        return items

    def run(self, num_iterations: int) -> IterationInfo:
        """Does `num_iterations` iterations, in compiled calls of about half a second.

        The results do not depend on the division into calls, and iterations that take
        less than half a second together are one call. Ctrl-C ends the run after the
        current call with a KeyboardInterrupt; the loop can then be run again, and goes
        on from there. If the environment does not return, a second Ctrl-C ends the
        process.

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
                size, loss_sum = self._run_call(num_iterations - done, loss_sum)
                done += size
                if done >= num_iterations and self._is_started:
                    break
        return self.info(float(loss_sum) / done if done else float("nan"))

    def run_call(self, most_iterations: int) -> IterationInfo:
        """Does at most so many iterations, in one call of about half a second.

        The first call only traces and compiles the program. Calls that collect initial
        experience do no iterations either.

        Args:
          most_iterations: The largest number of iterations.

        Raises:
          Exception: See `run`.
        """
        size, loss_sum = self._run_call(most_iterations, self._zero_loss)
        return self.info(float(loss_sum) / size if size else float("nan"))

    def _run_call(
        self, most_iterations: int, loss_sum: tf.Tensor
    ) -> tuple[int, tf.Tensor]:
        """Does at most `most_iterations` iterations in one call.

        Returns their number, and `loss_sum` plus their losses.
        """
        device = tf.device(self._placement.collecting_device)
        with loop_checks.short_assertions(), self._own_errors(), device:
            if not (self._is_started and self._position.is_set):
                self._is_started = self._start()
                if not self._is_started:
                    return 0, loss_sum
            is_traced = self.trace_count() > 0
            size = self._call_sizes.choose(most_iterations) if is_traced else 0
            started = time.monotonic()
            time_step, policy_state, loss_sum = self._call(
                *self._position.take(), tf.constant(size, tf.int64), loss_sum
            )
        self._position.set(time_step, policy_state)
        self._iteration.assign_add(size)
        loss = float(loss_sum)  # Waits for the device.
        if size > 0:
            self._call_sizes.measured(size, time.monotonic() - started)
            if self._jit_compile:
                self._check_call(loss, size)
        return size, loss_sum

    def info(self, loss: float = float("nan")) -> IterationInfo:
        """Returns the current counters and average return, with the given loss."""
        return IterationInfo(
            iteration=self.iteration,
            train_steps=int(self._agent.train_step_counter),
            environment_steps=int(self._environment_steps.result()),
            episodes=int(self._episodes.result()),
            average_return=float(self._average_return.result()),
            loss=loss,
        )

    @property
    def activity(self) -> str:
        """What the next call of `run_call` does, for reports of the progress."""
        return "training" if self.trace_count() else "compiling the training loop"

    def replay_size(self) -> int | None:
        """Returns the number of frames in the replay buffer.

        Returns None if the loop keeps no experience from one iteration to the next.
        """
        return None

    def can_draw_for_log(self) -> bool:
        """Whether `draw_for_log` can be called now."""
        return False

    def draw_for_log(self) -> Any:
        """Returns a batch as training draws it, in a graph; has no effect on training.

        A loop that says so by `can_draw_for_log` overrides this method.
        """
        raise NotImplementedError(f"{type(self).__name__}.draw_for_log")

    def trace_count(self) -> int:
        """Returns how often `run` has traced its graph; 1 after the first call."""
        return self._call.experimental_get_tracing_count()

    def environment_steps(self) -> tf.Tensor:
        """Returns the total steps of all environments, an int64 scalar."""
        return self._environment_steps.result()

    def agent_is_finite(self) -> tf.Tensor:
        """Returns whether the numbers of the agent's variables are finite, a bool."""
        return self._weights.are_finite()

    @contextlib.contextmanager
    def transformed_by(self, transform: run_transform.RunTransform) -> Iterator[None]:
        """Applies the parts of an iteration by `transform` in this context."""
        plain, self._transform = self._transform, transform
        try:
            yield
        finally:
            self._transform = plain

    def begin(self) -> tuple[Any, Any]:
        """Resets the environment, in a graph; for sweeps.

        Returns the first time step and the policy's initial state.
        """
        policy = self._agent.collect_policy
        batch_size = self._environment.batch_size
        return self._transform.apply(
            lambda: (self._environment.reset(), policy.get_initial_state(batch_size))
        )

    def _start(self) -> bool:
        """Resets the environment if the loop has no position to continue from.

        Returns whether the loop can iterate; if not, it must be called again.
        """
        if not self._position.is_set:
            self._position.set(
                self._environment.reset(),
                self._agent.collect_policy.get_initial_state(
                    self._environment.batch_size
                ),
            )
        return True

    @contextlib.contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Raises the exceptions of the loop's parts in place of TensorFlow's."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(compile_errors.explained())
            stack.enter_context(self._environment.reraise())
            if self._replay_buffer is not None:
                stack.enter_context(self._replay_buffer.reraise())
            stack.enter_context(observers_lib.reraise(self._observers))
            yield

    def _has_failed(self) -> tf.Tensor:
        """Returns a bool scalar, whether a call of Python has raised under XLA."""
        return functools.reduce(
            tf.logical_or,
            observers_lib.have_failed(self._observers),
            self._environment.has_failed(),
        )

    def _check_call(self, loss: float, num_iterations: int) -> None:
        """Raises the errors that a compiled call cannot raise itself.

        Args:
          loss: The call's mean loss.
          num_iterations: The number of iterations in the call.
        """
        self._weights.check(loss, num_iterations)

    def _iterations(
        self,
        time_step: Any,
        policy_state: Any,
        num_iterations: tf.Tensor,
        loss_sum: tf.Tensor,
    ) -> tuple[Any, Any, tf.Tensor]:
        """Does the iterations; adds their losses, float64, to `loss_sum`.

        The calls of one run pass the sum on, so that the order of the summation does
        not depend on their sizes.
        """

        def body(
            i: tf.Tensor, time_step: Any, policy_state: Any, loss_sum: tf.Tensor
        ) -> tuple[Any, ...]:
            time_step, policy_state, loss = self.iterate(time_step, policy_state)
            return i + 1, time_step, policy_state, loss_sum + tf.cast(loss, tf.float64)

        _, time_step, policy_state, loss_sum = tf.while_loop(
            lambda i, *_: (i < num_iterations) & ~self._has_failed(),
            body,
            (tf.constant(0, tf.int64), time_step, policy_state, loss_sum),
        )
        if self._jit_compile:
            with tf.device(self._placement.device):
                loss_sum = self._weights.nan_if_lost(loss_sum)
        return time_step, policy_state, loss_sum

    def _copied_weights(self) -> list[Any]:
        """Returns the variables that a program on the host may copy from the device."""
        return [*self._agent.variables(), *self._agent.collect_policy.variables()]

    @abc.abstractmethod
    def iterate(self, time_step: Any, policy_state: Any) -> tuple[Any, Any, tf.Tensor]:
        """Does one iteration in a graph.

        Args:
          time_step: The current time step.
          policy_state: The current state of the collecting policy.

        Returns:
          The time step and policy state to continue from, and the loss.
        """

    def _take_step(
        self, policy: tf_policy.TFPolicy, time_step: Any, policy_state: Any
    ) -> tuple[trajectory.Trajectory, Any, Any]:
        """Steps the environment; returns the frame, the time step and policy state."""
        action_step = policy.action(time_step, policy_state, seed=self._step_seed())
        next_time_step = self._environment.step(action_step.action)
        frame = trajectory.from_transition(time_step, action_step, next_time_step)
        observers_lib.show(self._observers, frame, "observers")
        return frame, next_time_step, action_step.state

    def _add(self, frame: trajectory.Trajectory) -> tf.Tensor:
        """Adds `frame` to the buffer; returns an int64 scalar that depends on it.

        If `add_batch` returns an int64 scalar, that is the result.
        """
        done = self._replay_buffer.add_batch(frame)
        if tf.is_tensor(done) and (done.shape.rank, done.dtype) == (0, tf.int64):
            return done
        pending = [part for part in tf.nest.flatten(done) if part is not None]
        with tf.control_dependencies(pending):
            return tf.identity(tf.cast(self._replay_buffer.num_frames(), tf.int64))

    def _step_seed(self) -> tf.Tensor:
        """Counts a step, and returns its stateless seed, int64 `[2]`."""
        step = self._step.assign_add(1, read_value=True)
        return tf.stack([self._seed.read_value(), tf.cast(step, tf.int64)])
