"""The loop of agents that learn from whole episodes of their own policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.environments import tf_environment
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.train import loop
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


class EpisodicLoop(loop.Loop):
    """Collects whole episodes, trains on them once, forgets them; over and over.

    Every iteration resets the environment, collects `collect_episodes_per_iteration`
    episodes with the current policy, does one update with all of them, `[B, T, ...]`,
    and clears the buffer. Each member of a batched environment gives the same number of
    episodes, its first ones: taking whichever end first would prefer short ones.

    The experience of an iteration is all that the buffer holds, so it is gathered from
    the buffer's variables at once.

    Args:
      environment: see `Loop`.
      agent: see `Loop`.
      replay_buffer: a `TFUniformReplayBuffer` whose `max_length` holds the longest
        episodes of one member in an iteration.
      observers: see `Loop`.
      collect_episodes_per_iteration: a multiple of the environment's batch size.
      seed: see `Loop`.

    Raises:
      ValueError: a number of episodes that cannot be divided among the members, or
        specs that do not match.
    """

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        replay_buffer: tf_uniform_replay_buffer.TFUniformReplayBuffer,
        observers: Sequence[Callable[[Any], Any]] = (),
        *,
        collect_episodes_per_iteration: int = 1,
        seed: int | None = None,
        jit_compile: bool = False,
    ) -> None:
        super().__init__(
            environment, agent, replay_buffer, observers, seed, jit_compile
        )
        batch_size = environment.batch_size
        episodes = collect_episodes_per_iteration
        if episodes < 1 or episodes % batch_size:
            raise ValueError(
                "collect_episodes_per_iteration: expected a multiple of the "
                f"environment's batch size {batch_size}, got {episodes}; each member "
                "gives the same number of episodes."
            )
        self._episodes_per_member = episodes // batch_size

    def _run_iteration(
        self, time_step: Any, policy_state: Any
    ) -> tuple[Any, Any, tf.Tensor]:
        del time_step, policy_state
        time_step, policy_state = self._collect()
        episodes = _keep_first_episodes(
            self._replay_buffer.gather_all(), self._episodes_per_member
        )
        loss = self._agent.train(episodes).loss
        self._replay_buffer.clear()
        return time_step, policy_state, loss

    def _collect(self) -> tuple[Any, Any]:
        """Fills the buffer with new episodes until every member has given its share."""
        policy = self._agent.collect_policy
        batch_size = self._environment.batch_size

        def step(
            finished: tf.Tensor, time_step: Any, policy_state: Any, added: tf.Tensor
        ) -> tuple[Any, ...]:
            frame, *reached = self._take_step(policy, time_step, policy_state)
            with tf.control_dependencies([self._assert_room(added)]):
                added = self._replay_buffer.add_batch(frame)
            finished += tf.cast(frame.is_episode_end(), tf.int32)
            return finished, *reached, added

        _, time_step, policy_state, _ = tf.while_loop(
            lambda finished, *_: tf.reduce_any(finished < self._episodes_per_member),
            step,
            (
                tf.zeros([batch_size], tf.int32),
                self._environment.reset(),
                policy.get_initial_state(batch_size),
                tf.constant(-1, tf.int64),
            ),
        )
        return time_step, policy_state

    def _assert_room(self, added: tf.Tensor) -> Any:
        max_length = self._replay_buffer.max_length
        return tf.debugging.Assert(
            added + 1 < max_length,
            [
                f"EpisodicLoop: the episodes of one iteration do not fit into the "
                f"buffer's max_length={max_length} frames of an environment; make it "
                "larger, or limit the episodes with a TimeLimit."
            ],
        )


def _keep_first_episodes(
    frames: trajectory.Trajectory, num_episodes: int
) -> trajectory.Trajectory:
    """Makes what follows each row's first `num_episodes` episodes an unfinished one.

    Agents mask unfinished episodes.
    """
    finished_before = tf.cumsum(
        tf.cast(frames.is_episode_end(), tf.int32), axis=1, exclusive=True
    )
    return frames._replace(
        next_step_type=tf.where(
            finished_before < num_episodes, frames.next_step_type, ts.StepType.MID
        )
    )
