"""The training loop of agents that learn from replay, such as DQN and SAC."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, fast_dataset, trace_counts
from tfrl.environments import tf_environment
from tfrl.policies import (
    policy_info_updater_wrapper,
    random_tf_policy,
    tf_policy,
)
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.specs import tensor_spec
from tfrl.train.loops import (
    collecting_loop,
    loop_checks,
    placement,
    replay_updates,
)
from tfrl.trajectories import trajectory
from tfrl.utils import call_sizes, number_checks, variables

if TYPE_CHECKING:
    from tfrl.typing import types


class OffPolicyLoop(collecting_loop.CollectingLoop):
    """Collects steps and trains on replayed batches, repeatedly, in one call.

    An iteration takes `collect_steps_per_iteration` steps of the batched environment
    and adds each of them to the buffer. Then it does `train_steps_per_iteration`
    updates.

    Each collected frame, including the initial frames, is added once to the statistics
    of the agent's normalizers, before the next update.

    From a uniform buffer, all batches of an iteration are drawn together, after the
    iteration's last step was added. The buffer does not change between the updates, so
    drawing the batches one by one would be the same algorithm.

    From a prioritized buffer, the batches are drawn one by one, because each update
    changes the priorities. The agent trains with the importance weights of the sample.
    The new priorities are the absolute TD errors, or the losses if the agent returns no
    TD errors. For errors `[B, T]`, the largest error over time is used, unless
    `priority_fn` is given.
    """

    supports_sweep = True

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffer_lib.ReplayBuffer,
        observers: Sequence[types.Observer] = (),
        *,
        collect_steps_per_iteration: int = 1,
        train_steps_per_iteration: int = 1,
        initial_collect_steps: int = 1000,
        initial_collect_policy: tf_policy.TFPolicy | None = None,
        sample_batch_size: int = 64,
        sampling: Literal["dataset", "variables"] | None = None,
        sequence_length: int | None = None,
        seed: int | None = None,
        jit_compile: bool | Literal["auto"] = False,
        priority_fn: replay_updates.PriorityFn | None = None,
        overlap: bool = False,
    ) -> None:
        """Creates the loop.

        Args:
          environment: See `CollectingLoop`.
          agent: See `CollectingLoop`. With a prioritized buffer, the agent's `train`
            must accept weights of examples and return `td_error` or `td_loss` in
            `LossInfo.extra`.
          replay_buffer: Any `ReplayBuffer`, such as a `TFUniformReplayBuffer` or a
            `TFPrioritizedReplayBuffer`. A `ReverbReplayBuffer` needs observers, and
            items as long as an example; its size is counted in items.
          observers: See `CollectingLoop`.
          collect_steps_per_iteration: The number of steps of the batched environment in
            an iteration. A member of the batch that is reset in such a step does not
            take an environment step.
          train_steps_per_iteration: The number of updates in an iteration.
          initial_collect_steps: The number of environment steps to collect before the
            first iteration, if the buffer is empty then.
          initial_collect_policy: The policy for the initial steps; uniformly random if
            None.
          sample_batch_size: The number of examples in an update.
          sampling: "dataset" takes the batches from the buffer's `as_dataset` pipeline;
            "variables" gathers them from the buffer's variables in the loop itself,
            which is faster; the distribution of the examples is the same. None chooses
            "variables" if the loop is compiled or its buffer is not on the CPU, else
            "dataset".
          sequence_length: The number of frames in an example, for an agent that learns
            from sequences of any length, such as an agent with a recurrent network.
            None takes the agent's `train_sequence_length`.
          seed: See `CollectingLoop`.
          jit_compile: See `CollectingLoop`.
          priority_fn: A function of the TD errors, `[B]` or `[B, T]`, that returns the
            priorities `[B]` of a prioritized buffer, such as R2D2's
            `losses.sequence_priorities`; None takes the largest absolute error over
            time.
          overlap: Whether the last step of an iteration runs on a thread while the
            updates do. Nothing else changes but that its frame is added after the
            updates, so these cannot draw it. For Python environments.

        Raises:
          ValueError: A number is not positive, `overlap` does not fit the environment,
            `sampling` is unknown or cannot be compiled, the buffer or the initial
            collection is too small for one sample, or specs do not match. `run` raises
            it if the buffer is not empty, but holds too few frames for one sample.
          TypeError: A number is not an integer, or a part is of another kind.
        """
        loop_checks.check_replay_buffer(replay_buffer)
        super().__init__(
            environment, agent, replay_buffer, observers, seed, jit_compile
        )
        for name, value in (
            ("collect_steps_per_iteration", collect_steps_per_iteration),
            ("train_steps_per_iteration", train_steps_per_iteration),
            ("initial_collect_steps", initial_collect_steps),
            ("sample_batch_size", sample_batch_size),
        ):
            number_checks.check_integer(name, value, 1, remedy="give a positive number")
        stored = variables.tracked_variables(replay_buffer)
        self._replay_device = placement.device_of(stored)
        from_dataset = loop_checks.is_from_dataset(
            sampling, self._jit_compile, self._replay_device
        )
        self._num_steps = loop_checks.check_sequence_length(sequence_length, agent)
        replay_buffer.check_fits(self._num_steps)
        self._initial_steps = -(-initial_collect_steps // environment.batch_size)
        loop_checks.check_initial_collection(
            initial_collect_steps, self._initial_steps, self._num_steps, environment
        )
        self._collect_steps = collect_steps_per_iteration
        self._train_steps = train_steps_per_iteration
        self._batch_size = sample_batch_size
        self._initial_policy = initial_collect_policy or _random_policy(
            environment, agent.collect_policy
        )
        self._initial_policy.prepare(environment.batch_size)
        # The number of initial steps that a collection in progress still has to take.
        self._initial_left = 0
        self._initial_state_now: Any = ()
        self._initial_sizes = call_sizes.CallSizes(first=16)
        self._collect_initial = tf.function(
            trace_counts.of_one_object(self._collect_initially), autograph=False
        )
        self._prioritized = replay_buffer.is_prioritized
        self._priority_fn = priority_fn
        self._drawn_at_once = (
            sample_batch_size
            if self._prioritized
            else sample_batch_size * train_steps_per_iteration
        )
        self._collect_on_host = self._placement.on_host(
            functools.partial(self._collect_frames, collect_steps_per_iteration),
            self._copied_weights,
            self._jit_compile,
        )
        self._learn_on_device = self._placement.on_device(
            self._learn, self._jit_compile
        )
        self._overlap = overlap
        if overlap:
            loop_checks.check_overlap(environment)
            self._begin_on_host = self._placement.on_host(
                self._begin_last_step, self._copied_weights, self._jit_compile
            )
            self._end_on_host = self._placement.on_host(
                self._end_last_step, self._copied_weights, self._jit_compile
            )
            self._add_on_device = self._placement.on_device(
                self._add, self._jit_compile
            )
        self._iterator = None
        if from_dataset:
            self._iterator = iter(
                replay_buffer.as_dataset(self._drawn_at_once, self._num_steps)
            )

    @property
    def most_steps_per_iteration(self) -> int:
        """The steps of an iteration without the boundaries of episodes."""
        return self._collect_steps * self._environment.batch_size

    @property
    def samples_from_dataset(self) -> bool:
        """Whether the batches come from the buffer's `as_dataset` pipeline."""
        return self._iterator is not None

    @property
    def activity(self) -> str:
        """The work of the next call of `run_call`, for reports of the progress."""
        is_new = not self._is_started and self._initial_steps_left(self.replay_size())
        if self._initial_left or is_new:
            return f"collecting initial experience, then {super().activity}"
        return super().activity

    def replay_size(self) -> int:
        """Returns the number of frames in the replay buffer."""
        return int(self._replay_buffer.num_frames())

    def can_draw_for_log(self) -> bool:
        """Whether the buffer draws from a seed, and holds enough frames."""
        needed = self._num_steps * self._environment.batch_size
        return self._replay_buffer.draws_by_seed and self.replay_size() >= needed

    def draw_for_log(self) -> types.NestedTensor | None:
        """Returns a batch drawn as in training, but with a separate seed."""
        seed = tf.stack([self._seed, -1 - self._iteration])
        with self._at_replay_buffer():
            sample = self._replay_buffer.sample(self._batch_size, self._num_steps, seed)
        return sample[0]

    def begin(self) -> tuple[types.TimeStep, types.NestedTensor]:
        """Resets the environment and takes the initial steps, in a graph.

        Returns the last time step and the initial state of the collecting policy.
        """
        time_step, _ = self._collect_initially(
            self._transform.apply(self._environment.reset),
            self._initial_state(self._initial_policy),
            self._initial_steps,
        )
        return time_step, self._initial_state(self._agent.collect_policy)

    def _start(self) -> bool:
        super()._start()
        if self._initial_left == 0:
            num_frames = int(self._replay_buffer.num_frames())
            self._initial_left = self._initial_steps_left(num_frames)
            if self._initial_left == 0:
                loop_checks.check_can_sample(
                    num_frames // self._environment.batch_size,
                    self._collect_steps - self._overlap,
                    self._num_steps,
                )
                return True
            self._initial_state_now = self._initial_state(self._initial_policy)
        is_traced = self._collect_initial.experimental_get_tracing_count() > 0
        size = self._initial_sizes.choose(self._initial_left) if is_traced else 0
        started = time.monotonic()
        time_step, self._initial_state_now = self._collect_initial(
            self._position.take()[0],
            self._initial_state_now,
            tf.constant(size, tf.int64),
        )
        self._position.set(time_step, self._initial_state(self._agent.collect_policy))
        if size > 0:
            self._initial_sizes.measured(size, time.monotonic() - started)
        self._initial_left -= size
        if self._initial_left == 0:
            self._replay_buffer.check_collected()
        return self._initial_left == 0

    def _initial_steps_left(self, num_frames: int) -> int:
        """Returns the number of initial steps to take for a buffer of `num_frames`."""
        if num_frames == 0:
            return self._initial_steps
        # The buffer was filled by the user, or comes from a checkpoint, which may have
        # been saved during the initial collection.
        taken = int(self._step)
        if self.iteration == 0 and 0 < taken < self._initial_steps:
            return self._initial_steps - taken
        return 0

    def _collect_initially(
        self, time_step: Any, policy_state: Any, num_steps: tf.Tensor | int
    ) -> tuple[Any, Any]:
        """Takes steps of the initial policy; returns the time step and policy state."""
        with accelerators.graph_for(self._placement.collecting_device):
            time_step, policy_state, _ = self._collect(
                self._initial_policy, time_step, policy_state, num_steps
            )
        return time_step, policy_state

    def _initial_state(self, policy: tf_policy.TFPolicy) -> Any:
        return self._transform.apply(
            lambda: policy.get_initial_state(self._environment.batch_size)
        )

    def iterate(
        self, time_step: types.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[types.TimeStep, types.NestedTensor, tf.Tensor]:
        """Collects steps, adds them to the buffer and updates the agent."""
        if self._overlap:
            return self._iterate_overlapped(time_step, policy_state)
        if self._placement.is_split:
            time_step, policy_state, frames = self._collect_on_host(
                time_step, policy_state
            )
            return time_step, policy_state, self._learn_on_device(frames)
        time_step, policy_state, added = self._collect(
            self._agent.collect_policy, time_step, policy_state, self._collect_steps
        )
        return time_step, policy_state, self._train(added, self._train_steps)

    def _iterate_overlapped(
        self, time_step: Any, policy_state: Any
    ) -> tuple[Any, Any, tf.Tensor]:
        """Updates the agent while the environment takes the iteration's last step."""
        frames, time_step, action_step, sent = self._begin_on_host(
            time_step, policy_state
        )
        loss = self._learn_on_device(frames, sent)
        frame, reached = self._end_on_host(time_step, action_step, loss)
        self._add_on_device(frame)
        return reached, action_step.state, loss

    def _begin_last_step(
        self, time_step: Any, policy_state: Any
    ) -> tuple[Any, Any, Any, tf.Tensor]:
        """Takes the steps of an iteration but the last, whose actions it sends.

        Returns the frames before the last, `[steps - 1, B, ...]` or (), the last time
        step, the policy's step, and the result of `send`.
        """
        frames: Any = ()
        if self._collect_steps > 1:
            time_step, policy_state, frames = self._collect_frames(
                self._collect_steps - 1, time_step, policy_state
            )
        time_step, action_step, action = self._act(
            self._agent.collect_policy, time_step, policy_state, self._step_seed()
        )
        return frames, time_step, action_step, self._environment.send(action)

    def _end_last_step(
        self, time_step: Any, action_step: Any, loss: tf.Tensor
    ) -> tuple[trajectory.Trajectory, Any]:
        """Returns the frame and the time step of the step that was sent."""
        reached = self._environment.receive(loss)
        frame = self._show_frame(time_step, action_step, reached)
        self._average_return(frame)
        self._count(frame)
        return frame, reached

    def _collect(
        self,
        policy: tf_policy.TFPolicy,
        time_step: Any,
        policy_state: Any,
        num_steps: tf.Tensor | int,
    ) -> tuple[Any, Any, tf.Tensor]:
        """Takes `num_steps` steps of the environment and adds them to the buffer.

        Returns the last time step, the last policy state, and a tensor that depends on
        the last addition to the buffer.
        """

        def step(
            i: Any, time_step: Any, policy_state: Any, added: Any
        ) -> tuple[Any, ...]:
            del i, added
            frame, *reached = self._take_step(policy, time_step, policy_state)
            return *reached, self._add(frame)

        added = self._transform.broadcast(tf.constant(-1, tf.int64))
        return self._transform.repeat(num_steps, step, (time_step, policy_state, added))

    def _learn(self, frames: Any, sent: tf.Tensor | None = None) -> tf.Tensor:
        """Adds frames and trains; returns the mean loss.

        Args:
          frames: The frames `[steps, B, ...]`; () for none.
          sent: The 0 that `TFEnvironment.send` returned, if a step runs meanwhile. It
            is added to the number of updates, so XLA begins these after the step.
        """

        def add(i: tf.Tensor, added: tf.Tensor) -> tuple[tf.Tensor]:
            del added
            return (self._add(accelerators.map_moved(lambda t: t[i], frames)),)

        num_updates: tf.Tensor | int = self._train_steps
        added = self._transform.broadcast(tf.constant(-1, tf.int64))
        if sent is not None:
            added, num_updates = sent, num_updates + sent
        if frames != ():
            num_frames = self._collect_steps - self._overlap
            (added,) = self._transform.repeat(num_frames, add, (added,))
        return self._train(added, num_updates)

    def _add(self, frame: trajectory.Trajectory) -> tf.Tensor:
        self._agent.update_normalizers(frame)
        with self._at_replay_buffer():
            return super()._add(frame)

    def _at_replay_buffer(self) -> Any:
        """Returns the device scope of the buffer's variables."""
        stack = contextlib.ExitStack()
        stack.enter_context(accelerators.graph_for(self._replay_device))
        if self._placement.is_split:
            stack.enter_context(tf.device(self._replay_device))
        return stack

    def _train(self, added: tf.Tensor, num_updates: tf.Tensor | int) -> tf.Tensor:
        """Updates the agent with batches that are drawn after `added` is computed.

        Returns the mean loss.
        """
        start = self._transform.broadcast(tf.constant(0.0)), added
        if self._prioritized:
            loss_sum, _ = self._transform.repeat(
                num_updates, self._prioritized_update, start
            )
        else:
            batches = self._transform.apply(self._draw_batches, added)
            loss_sum, _ = self._transform.repeat(
                num_updates, self._update, start, (batches,)
            )
        return loss_sum if self._train_steps == 1 else loss_sum / self._train_steps

    def _draw_batches(self, added: tf.Tensor) -> Any:
        """Draws the batches of all train steps, `[train steps, B, ...]` if several."""
        experience, info = self._sample(added)
        if not replay_updates.refreshes(self._agent, self._replay_buffer):
            info = ()
        if self._train_steps == 1:
            return experience, info
        shape = [self._train_steps, self._batch_size]
        return accelerators.map_moved(
            lambda t: tf.reshape(t, [*shape, *t.shape[1:]]), (experience, info)
        )

    def _update(
        self, i: tf.Tensor, loss_sum: tf.Tensor, done: tf.Tensor, batches: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Trains with the batch of train step `i`."""
        if self._train_steps > 1:
            batches = accelerators.map_moved(lambda t: t[i], batches)
        loss = self._train_on(*batches).loss
        return loss_sum + loss, done

    def _prioritized_update(
        self, i: tf.Tensor, loss_sum: tf.Tensor, done: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Draws a batch, trains with it and updates its priorities.

        The batch is drawn after `done` has been computed.
        """
        del i
        experience, info = self._sample(done)
        loss = self._train_on(experience, info).loss
        with tf.control_dependencies([loss]):
            return loss_sum + loss, tf.identity(done)

    def _train_on(self, experience: Any, info: Any) -> tf_agent.LossInfo:
        return replay_updates.train_on(
            self._agent,
            self._replay_buffer,
            experience,
            info,
            self._at_replay_buffer,
            self._priority_fn,
        )

    def _sample(self, done: tf.Tensor) -> Any:
        """Draws items and their info after `done` has been computed."""
        # In a graph, some iterators draw like `get_next`, which draws again if a writer
        # has overwritten the frames meanwhile. That cannot happen here, because the
        # loop is the buffer's only writer.
        if self._iterator is None or fast_dataset.draws_in_graph(self._iterator):
            with tf.control_dependencies([done]), self._at_replay_buffer():
                return self._replay_buffer.get_next(
                    self._drawn_at_once, self._num_steps
                )
        # A pipeline reads the buffer's variables where TensorFlow's automatic control
        # dependencies do not see the reads, so the order is given explicitly.
        with tf.control_dependencies([done]), self._at_replay_buffer():
            return next(self._iterator)


def _random_policy(
    environment: tf_environment.TFEnvironment, policy: tf_policy.TFPolicy
) -> tf_policy.TFPolicy:
    """Returns a random policy with the constraints and the info of `policy`.

    Entries of the info that it does not know, such as the state of a network, are zero.
    """
    info_spec = policy.info_spec
    entries = info_spec if isinstance(info_spec, Mapping) else None
    has_logs = entries is not None and policy.emit_log_probability
    random = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(),
        environment.action_spec(),
        info_spec={} if has_logs else (),
        emit_log_probability=policy.emit_log_probability,
        observation_and_action_constraint_splitter=(
            policy.observation_and_action_constraint_splitter
        ),
    )
    if entries is None:
        return random
    unknown = {
        name: spec for name, spec in entries.items() if name not in random.info_spec
    }
    return policy_info_updater_wrapper.PolicyInfoUpdaterWrapper(
        random,
        info_spec,
        lambda _: tensor_spec.zero_spec_nest(unknown, [environment.batch_size]),
    )
