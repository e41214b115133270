"""The base class of training loops with an environment.

An iteration collects, adds, samples and trains. In addition to the state of every
`TrainingLoop`, a checkpoint saves the metrics, and the environment if it can be saved.
"""

from __future__ import annotations

import abc
import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.drivers import observers as observers_lib
from tfrl.environments import tf_environment
from tfrl.metrics import tf_metrics
from tfrl.policies import tf_policy
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.specs import tensor_spec
from tfrl.train.loops import (
    loop_checks,
    placement,
    position,
    rollouts,
    training_loop,
)
from tfrl.train.loops.training_loop import IterationInfo as IterationInfo
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

if TYPE_CHECKING:
    from tfrl.typing import types


class CollectingLoop(training_loop.TrainingLoop):
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
        observers: Sequence[types.Observer],
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
            calls. None draws a seed. An environment without a seed gets this seed, too;
            an environment that was given a seed, by its own `seed`, keeps it.
          jit_compile: Whether XLA compiles the whole call into one program. Compiling
            takes a few seconds; small networks are then several times faster. The
            results agree with the plain graph's results to float32's accuracy. XLA
            removes the checks inside the call, so the loop checks after the call that
            the losses and the agent's variables are finite. The program calls a Python
            environment on the CPU. "auto" compiles a loop if it can be compiled, and
            otherwise warns. A loop cannot be compiled if its replay buffer is in a
            server, if variables of its parts are on devices that one program cannot
            reach, or if its environment is in Python and compiled programs of this
            build of TensorFlow cannot call Python.

        Raises:
          ValueError: Specs or batch sizes do not match, or `jit_compile` is True and
            the loop cannot be compiled. `run` raises it if a compiled program uses a
            variable of another device that none of the loop's parts holds.
        """
        loop_checks.check_specs(environment, agent, replay_buffer)
        placed = placement.placement_of(
            agent.variables(),
            environment.calls_python,
            jit_compile=bool(jit_compile),
        )
        obstacle = jit_compile and loop_checks.obstacle_to_compilation(
            environment,
            agent,
            replay_buffer,
            observers,
            placed,
            self._collects_into_buffer,
        )
        super().__init__(
            agent,
            replay_buffer,
            seed,
            loop_checks.resolve_compilation(jit_compile, obstacle),
            placed,
        )
        self._environment = environment
        if seed is not None:
            _seed(environment, seed)
        with tf.device(placed.collecting_device):
            self._average_return = tf_metrics.AverageReturnMetric(
                batch_size=environment.batch_size
            )
            self._episodes = tf_metrics.NumberOfEpisodes()
            self._environment_steps = tf_metrics.EnvironmentSteps()
            agent.collect_policy.prepare(environment.batch_size)
        self._observers: list[Callable[[Any], Any]] = list(observers)
        self._position = position.Position(environment)
        self._held_fields = environment.held_fields if self._jit_compile else ()

    @property
    def environment(self) -> tf_environment.TFEnvironment:
        """The environment in which the loop collects experience."""
        return self._environment

    def python_seconds(self) -> float:
        """Returns the seconds in the environment's Python code; see `TFEnvironment`."""
        return self._environment.python_seconds

    @property
    def calls_python(self) -> bool:
        """Whether the environment, an observer or a sample calls Python."""
        return (
            self._environment.calls_python
            or any(map(observers_lib.calls_python, self._observers))
            or (self._replay_buffer is not None and self._replay_buffer.calls_python)
        )

    @property
    def samples_from_dataset(self) -> bool:
        """Whether an iteration reads a tf.data pipeline, which XLA cannot compile."""
        return False

    @property
    def most_steps_per_iteration(self) -> int | None:
        """The largest number of steps that an iteration takes; None if unknown."""
        return None

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save so that a run can be resumed, by name.

        The states of the environment and of the policy are included if the environment
        can save its state. Otherwise a restored loop begins a new episode, which the
        buffer records as a cut, never as a transition.
        """
        return {
            **super().checkpoint_items(include_replay_buffer),
            "average_return": self._average_return,
            "episodes": self._episodes,
            "environment_steps": self._environment_steps,
            "observers": self._observer_modules(),
            "position": self._position,
        }

    def has_position(self) -> bool:
        """Whether there is a time step to continue from, and not a reset to do."""
        return self._position.is_set

    def info(self, loss: float = float("nan")) -> IterationInfo:
        """Returns the current counters and average return, with the given loss."""
        return (
            super()
            .info(loss)
            ._replace(
                environment_steps=int(self._environment_steps.result()),
                episodes=int(self._episodes.result()),
                average_return=float(self._average_return.result()),
            )
        )

    def environment_steps(self) -> tf.Tensor:
        """Returns the total steps of all environments, an int64 scalar."""
        return self._environment_steps.result()

    def begin(self) -> tuple[types.TimeStep, types.NestedTensor]:
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
        """Raises the exceptions of the loop's parts instead of TensorFlow's."""
        with (
            super()._own_errors(),
            self._environment.reraise(),
            observers_lib.reraise(self._observers),
        ):
            yield

    def _take_position(self) -> tuple[Any, ...]:
        return self._position.take()

    def _set_position(self, position: tuple[Any, ...]) -> None:
        self._position.set(*position)

    def _has_failed(self) -> tf.Tensor:
        """Returns a bool scalar: whether a call of Python has raised under XLA."""
        return functools.reduce(
            tf.logical_or,
            observers_lib.have_failed(self._observers),
            self._environment.has_failed(),
        )

    def _do_iterations(
        self, position: tuple[Any, ...], num_iterations: tf.Tensor, loss_sum: tf.Tensor
    ) -> tuple[tuple[Any, ...], tf.Tensor]:
        time_step, policy_state = position
        start = self._to_carry(time_step), policy_state
        position, loss_sum = super()._do_iterations(start, num_iterations, loss_sum)
        carried, policy_state = position
        return (self._time_step(carried), policy_state), loss_sum

    def _advance(self, position: tuple[Any, ...]) -> tuple[tuple[Any, ...], tf.Tensor]:
        carried, policy_state = position
        time_step, policy_state, loss = self.iterate(
            self._time_step(carried), policy_state
        )
        return (self._to_carry(time_step), policy_state), loss

    def _to_carry(self, time_step: Any) -> Any:
        """Returns what a loop in the graph carries for the environment's time step.

        A compiled loop carries the environment's variables. It leaves out the fields
        that these hold, because XLA would copy equal values at each step, to keep each
        of them in memory of its own.
        """
        return time_step._replace(**dict.fromkeys(self._held_fields, ()))

    def _time_step(self, carried: Any) -> Any:
        """Returns the current time step, for which `_to_carry` returned `carried`."""
        if not self._held_fields:
            return carried
        now = self._environment.current_time_step()
        return carried._replace(**{n: getattr(now, n) for n in self._held_fields})

    def _observer_modules(self) -> list[tf.Module]:
        """Returns the loop's own metrics and the observers that have variables."""
        return [
            self._average_return,
            self._episodes,
            self._environment_steps,
            *(o for o in self._observers if isinstance(o, tf.Module)),
        ]

    def _copied_weights(self) -> list[Any]:
        """Returns the variables that a program on the host may copy from the device."""
        return [*self._agent.variables(), *self._agent.collect_policy.variables()]

    @abc.abstractmethod
    def iterate(
        self, time_step: types.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[types.TimeStep, types.NestedTensor, tf.Tensor]:
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
        frame, *reached = self._step_with(
            policy, time_step, policy_state, self._step_seed()
        )
        self._average_return(frame)
        self._count(frame)
        return frame, *reached

    def _count(self, frames: trajectory.Trajectory) -> None:
        """Counts the steps and episodes of frames `[B, ...]` or `[T, B, ...]`."""
        self._episodes(frames)
        self._environment_steps(frames)

    def _step_with(
        self, policy: tf_policy.TFPolicy, time_step: Any, policy_state: Any, seed: Any
    ) -> tuple[trajectory.Trajectory, Any, Any]:
        """Steps the environment like `_take_step`, but does not count the step."""
        time_step, action_step, action = self._act(
            policy, time_step, policy_state, seed
        )
        next_time_step = self._environment.step(action)
        frame = self._show_frame(time_step, action_step, next_time_step)
        return frame, next_time_step, action_step.state

    def _act(
        self, policy: tf_policy.TFPolicy, time_step: Any, policy_state: Any, seed: Any
    ) -> tuple[Any, Any, Any]:
        """Returns the time step, the policy's step and the environment's action."""
        if self._environment.is_bandit:
            time_step = ts.new_round(time_step)
        action_step = policy.action(time_step, policy_state, seed=seed)
        return time_step, action_step, self._environment_action(action_step.action)

    def _show_frame(
        self, time_step: Any, action_step: Any, next_time_step: Any
    ) -> trajectory.Trajectory:
        """Returns the frame of a step, which the observers have seen."""
        frame = trajectory.from_transition(time_step, action_step, next_time_step)
        observers_lib.show(self._observers, frame, "observers")
        return frame

    def _environment_action(self, action: Any) -> Any:
        """Converts the policy's action to the action for the environment."""
        return action

    def _collect_frames(
        self, num_steps: int, time_step: Any, policy_state: Any
    ) -> tuple[Any, Any, trajectory.Trajectory]:
        """Takes steps of the collecting policy without adding them to a buffer.

        Returns the last time step and policy state, and the frames `[num_steps, B,
        ...]`.
        """
        *reached, frames, _ = self._scan_steps(num_steps, time_step, policy_state)
        return *reached, frames

    def _scan_steps(
        self,
        num_steps: int,
        time_step: Any,
        policy_state: Any,
        *,
        keeps_states: bool = False,
    ) -> tuple[Any, Any, trajectory.Trajectory, Any]:
        """Takes steps of the collecting policy.

        On an accelerator each operation of a step takes a microsecond or more, so a
        step leaves out what can be computed once, from all frames.

        Args:
          num_steps: The number of steps.
          time_step: The time step to begin with.
          policy_state: The policy's state to begin with.
          keeps_states: Whether to return the policy's states.

        Returns:
          The last time step and policy state; the frames `[num_steps, B, ...]`; and the
          policy's states before the frames, like these, or ().
        """
        policy = self._agent.collect_policy
        state_spec = policy.policy_state_spec if keeps_states else ()
        frame_spec = self._agent.collect_data_spec

        def step(i: tf.Tensor, carried: Any, policy_state: Any) -> tuple[Any, Any]:
            seed = self._seed_after(tf.cast(i, tf.int64) + 1)
            frame, reached, next_state = self._step_with(
                policy, self._time_step(carried), policy_state, seed
            )
            returns = self._average_return.advance(frame)
            output = (
                frame._replace(next_step_type=()),
                returns,
                policy_state if keeps_states else (),
            )
            return (self._to_carry(reached), next_state), output

        def finish(frames: Any, returns: tf.Tensor, reached: Any) -> Any:
            self._step.assign_add(num_steps)
            if self._environment.is_bandit:
                last = tf.fill(frames.step_type.shape, tf.constant(ts.StepType.LAST))
                frames = frames._replace(next_step_type=last)
            else:
                frames = rollouts.with_next_step_types(frames, reached)
            self._average_return.keep(returns, frames.is_episode_end())
            self._count(frames)
            return frames

        (carried, policy_state), (frames, returns, states) = self._transform.scan(
            num_steps,
            step,
            (self._to_carry(time_step), policy_state),
            tensor_spec.add_outer_dim(
                (
                    frame_spec._replace(next_step_type=()),
                    tf.TensorSpec([], tf.float32),
                    state_spec,
                ),
                self._environment.batch_size,
            ),
        )
        time_step = self._transform.apply(self._time_step, carried)
        frames = self._transform.apply(finish, frames, returns, time_step)
        return time_step, policy_state, frames, states

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


def host_observer(function: types.Observer) -> observers_lib.HostObserver:
    """Returns an observer that calls a Python function at each step.

    It works in the loops of `tfrl.train`, plain and compiled, and in all drivers. An
    exception of the function ends the run and reaches its caller unchanged.

    ```python
    rewards = []

    def record(frame):
        rewards.append(frame.reward)

    loop = train.OffPolicyLoop(
        environment, agent, replay_buffer, [train.host_observer(record)]
    )
    loop.run(1000)  # rewards has an array `[B]` of each step
    ```

    The function is called in the order of the steps, including the initial steps of an
    `OffPolicyLoop` and the boundaries between episodes. The call may come from another
    thread. Checkpoints do not save data that the function keeps. A `tf.Variable` or a
    TF metric takes less time. `train.sweep` refuses a host observer, because one
    program takes the steps of many runs together.

    Args:
      function: Takes a `Trajectory` of NumPy arrays `[B, ...]`, which it may keep. Its
        result is ignored. As one of a driver's `transition_observers` it takes
        `(time_step, action_step, next_time_step)` of arrays.

    Raises:
      TypeError: `function` cannot be called.
    """
    return observers_lib.HostObserver(function)


def _seed(environment: tf_environment.TFEnvironment, seed: int) -> None:
    """Seeds an environment that was given no seed, if it can be seeded."""
    if not environment.is_seeded:
        with contextlib.suppress(NotImplementedError):
            environment.seed(seed)
