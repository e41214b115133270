"""The training loop of REINFORCE, which learns from whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import context
from tfrl.environments import tf_environment
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.train.loops import collecting_loop, loop_checks
from tfrl.trajectories import episodes, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types

# A compiled loop whose buffer is shorter than this always trains at one length.
_SHORT = 256


class _Ending(NamedTuple):
    """The frame that follows the last frames of all rows in the buffer.

    Attributes:
      is_needed: Whether an agent that bootstraps truncated episodes needs the frame.
      frame: A frame of every member, `[B, ...]`; zeros if it is not needed.
    """

    is_needed: tf.Tensor
    frame: trajectory.Trajectory


class EpisodicLoop(collecting_loop.CollectingLoop):
    """Collects whole episodes, trains on them once and discards them, repeatedly.

    It is REINFORCE's loop. PPO and A2C, which learn from parts of episodes, have the
    `OnPolicyLoop`.

    Every iteration resets the environment, collects `collect_episodes_per_iteration`
    episodes with the current policy, does one update with all of them, `[B, T, ...]`,
    and clears the buffer. Each member of a batched environment contributes its first
    episodes, the same number as every other member. Training on the episodes that end
    first would favour short episodes.

    The buffer only holds the experience of one iteration, and the loop trains on all of
    this experience. A compiled loop pads the experience with zeros to a quarter of the
    buffer's `max_length`, or to the whole `max_length` if the longest member needs
    more. So choose `max_length` no larger than necessary.

    If the agent bootstraps truncated episodes (`TFAgent.bootstraps_truncations`), a
    boundary frame with the last observation follows the last episode of each member,
    too. The environment does not take a step for this frame.
    """

    _collects_into_buffer = True

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffer_lib.ReplayBuffer,
        observers: Sequence[types.Observer] = (),
        *,
        collect_episodes_per_iteration: int = 1,
        seed: int | None = None,
        jit_compile: bool | Literal["auto"] = False,
    ) -> None:
        """Creates the loop.

        Args:
          environment: See `CollectingLoop`.
          agent: See `CollectingLoop`.
          replay_buffer: Any `ReplayBuffer` with `gather_all`, such as a
            `TFUniformReplayBuffer` whose `max_length` is enough for the episodes of one
            member in an iteration, or a `ReverbReplayBuffer` of a queue with observers
            that add episodes.
          observers: See `CollectingLoop`.
          collect_episodes_per_iteration: The number of episodes in an iteration, a
            multiple of the environment's batch size.
          seed: See `CollectingLoop`.
          jit_compile: See `CollectingLoop`.

        Raises:
          ValueError: A number of episodes that cannot be divided among the members, or
            specs that do not match.
          TypeError: A number is not an integer, or a part is of another kind.
        """
        loop_checks.check_replay_buffer(replay_buffer)
        super().__init__(
            environment, agent, replay_buffer, observers, seed, jit_compile
        )
        batch_size = environment.batch_size
        num_episodes = collect_episodes_per_iteration
        number_checks.check_integer(
            "collect_episodes_per_iteration",
            num_episodes,
            0,
            remedy="give each member of the environment the same number of episodes",
        )
        if num_episodes < 1 or num_episodes % batch_size:
            raise ValueError(
                "collect_episodes_per_iteration: expected a multiple of the "
                f"environment's batch size {batch_size}, got {num_episodes}; each "
                "member gives the same number of episodes."
            )
        self._episodes_per_member = num_episodes // batch_size
        # Some buffers, such as a queue, have no limit.
        self._max_length = replay_buffer.max_length or tf.int64.max
        # Whether an iteration of a compiled call overflowed the buffer.
        with tf.device(self._placement.collecting_device):
            self._overflowed = tf.Variable(False, trainable=False, name="overflowed")
        self._collect_on_host = self._placement.on_host(
            self._collect, self._copied_weights, self._jit_compile
        )
        self._train_on_device = self._placement.on_device(
            self._train, self._jit_compile
        )

    def iterate(
        self, time_step: types.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[types.TimeStep, types.NestedTensor, tf.Tensor]:
        """Collects new episodes from a reset and does one update with them."""
        del time_step, policy_state
        # A failed iteration leaves its frames in the buffer.
        self._replay_buffer.clear()
        time_step, policy_state, is_complete, ending = self._collect_on_host()
        if self._jit_compile:
            # XLA has no assertions, so `_check_call` raises the error instead.
            self._overflowed.assign(tf.logical_not(is_complete))
            loss = self._train_at_fixed_length(is_complete, ending)
        else:
            check = context.assert_true(is_complete, [self._overflow_message()])
            with tf.control_dependencies([check]):
                frames = self._replay_buffer.gather_all()
                if ending is not None:
                    frames = tf.cond(
                        ending.is_needed,
                        lambda: episodes.append(frames, ending.frame),
                        lambda: frames,
                    )
                loss = self._train_on_device(frames)
        self._replay_buffer.clear()
        return time_step, policy_state, loss

    def _collect(self) -> tuple[Any, Any, tf.Tensor, _Ending | None]:
        """Collects new episodes until every member has finished its number of them.

        Returns the last time step, the last policy state, whether every member has
        finished, and the frame that is missing at the rows' ends, if any. A member has
        not finished if the buffer became full first, or if an earlier iteration of a
        compiled call failed.
        """
        policy = self._agent.collect_policy
        batch_size = self._environment.batch_size
        max_length = self._max_length
        has_failed = self._jit_compile and self._overflowed.read_value()

        def is_unfinished(finished: tf.Tensor) -> tf.Tensor:
            return tf.reduce_any(finished < self._episodes_per_member)

        def goes_on(finished: tf.Tensor, *others: Any) -> tf.Tensor:
            has_room = others[-1] < max_length - 1
            return is_unfinished(finished) & has_room & tf.logical_not(has_failed)

        def step(
            finished: tf.Tensor, time_step: Any, policy_state: Any, added: tf.Tensor
        ) -> tuple[Any, ...]:
            del added
            frame, *reached = self._take_step(policy, time_step, policy_state)
            finished += tf.cast(frame.is_episode_end(), tf.int32)
            return finished, *reached, self._add(frame)

        finished, time_step, policy_state, _ = tf.while_loop(
            goes_on,
            step,
            (
                tf.zeros([batch_size], tf.int32),
                self._environment.reset(),
                policy.get_initial_state(batch_size),
                tf.constant(-1, tf.int64),
            ),
        )
        is_complete = tf.logical_not(is_unfinished(finished))
        ending = self._end_rows(time_step, policy_state, is_complete)
        return time_step, policy_state, is_complete, ending

    def _end_rows(
        self, time_step: ts.TimeStep, policy_state: Any, is_complete: tf.Tensor
    ) -> _Ending | None:
        """Makes the boundary frames that hold the last observations.

        The members that finished last have no boundary frame yet, because the next
        iteration resets the environment.

        Returns the frame to append to the buffer's rows, or None. A buffer without a
        `max_length` has room for the frame, so it is added there: the rows of such a
        buffer need not be environments.
        """
        if not self._agent.bootstraps_truncations:
            return None
        truncated = time_step.is_last() & (time_step.discount > 0)
        is_needed = is_complete & tf.reduce_any(truncated)
        if self._replay_buffer.max_length is None:
            tf.cond(
                is_needed,
                lambda: self._add(self._boundary(time_step, policy_state)),
                lambda: tf.constant(-1, tf.int64),
            )
            return None
        frame = tf.cond(
            is_needed,
            lambda: self._boundary(time_step, policy_state),
            self._zeros,
        )
        return _Ending(is_needed, frame)

    def _boundary(
        self, time_step: ts.TimeStep, policy_state: Any
    ) -> trajectory.Trajectory:
        """Returns a frame from LAST to FIRST for members at LAST, without a step.

        The frames of other members continue their episodes, which are not complete.
        """
        # The next step has the same seed. The environment does not see this action.
        seed = tf.stack([self._seed.read_value(), self._step.read_value() + 1])
        policy = self._agent.collect_policy
        return trajectory.from_transition(
            time_step,
            policy.action(time_step, policy_state, seed=seed),
            time_step._replace(
                step_type=tf.where(
                    time_step.is_last(), ts.StepType.FIRST, ts.StepType.MID
                ),
                reward=tf.nest.map_structure(tf.zeros_like, time_step.reward),
                discount=tf.ones_like(time_step.discount),
            ),
        )

    def _zeros(self) -> trajectory.Trajectory:
        batch_size = self._environment.batch_size
        return tf.nest.map_structure(
            lambda spec: tf.zeros([batch_size, *spec.shape], spec.dtype),
            self._replay_buffer.data_spec,
        )

    def _train(self, frames: trajectory.Trajectory) -> tf.Tensor:
        """Updates the agent with the first episodes of `frames`; returns the loss.

        The normalizers are updated afterwards, so that training uses the same
        statistics as the policy did.
        """
        shares = episodes.keep_first(frames, self._episodes_per_member)
        loss = self._agent.train(shares).loss
        self._agent.update_normalizers(frames)
        return loss

    def _train_at_fixed_length(
        self, is_complete: tf.Tensor, ending: _Ending | None
    ) -> tf.Tensor:
        """Updates the agent with frames that are padded to one of two fixed lengths.

        A compiled program needs fixed shapes. So the frames are padded with zeros to
        the buffer's `max_length`, or to a quarter of it if they fit. The quarter needs
        a second compiled program, but trains four times faster. Does nothing unless
        `is_complete`.
        """
        max_length = self._max_length
        lengths = sorted({-(-max_length // 4), max_length})
        if max_length < _SHORT:
            lengths = [max_length]
        added = self._replay_buffer.num_frames() // self._environment.batch_size
        needed = added
        if ending is not None:
            needed += tf.cast(ending.is_needed, added.dtype)
            # Episodes that fill the buffer need room for one frame more.
            lengths[-1] += 1

        def train(length: int) -> Callable[[], tf.Tensor]:
            return lambda: self._train_on_device(self._gather(length, added, ending))

        too_short = tf.cast(needed > tf.constant(lengths, added.dtype), tf.int32)
        return tf.switch_case(
            tf.where(is_complete, 1 + tf.reduce_sum(too_short), 0),
            [lambda: tf.constant(0.0), *map(train, lengths)],
        )

    def _gather(
        self, length: int, added: tf.Tensor, ending: _Ending | None
    ) -> trajectory.Trajectory:
        """Returns rows of `length` frames, padded with zeros.

        Args:
          length: At most one more than the buffer's `max_length`.
          added: The number of frames of each row that the buffer holds.
          ending: The frame to append to them, or None.
        """
        frames = self._replay_buffer.gather_first(min(length, self._max_length))
        if ending is None:
            return frames
        if length > self._max_length:
            frames = episodes.append(frames, self._zeros())
        position = tf.where(ending.is_needed, added, length)
        return episodes.put(frames, position, ending.frame)

    def _check_call(self, loss: float, num_iterations: int) -> None:
        if self._overflowed:
            self._overflowed.assign(False)
            raise tf.errors.InvalidArgumentError(None, None, self._overflow_message())
        super()._check_call(loss, num_iterations)

    def _overflow_message(self) -> str:
        return (
            "EpisodicLoop: the episodes of one iteration do not fit into the buffer's "
            f"max_length={self._max_length} frames of an environment; "
            "make it larger, or limit the episodes with a TimeLimit."
        )
