"""The training loop of agents that learn from recorded data alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.train.loops import (
    loop_checks,
    placement,
    replay_updates,
    training_loop,
)
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types


class OfflineLoop(training_loop.TrainingLoop):
    """Trains on batches of a filled replay buffer, without an environment.

    An iteration does `train_steps_per_iteration` updates. Each gathers its batch from
    the buffer's variables inside the call. Fill the buffer first, for instance with
    `datasets.fill`.

    When the loop is made, the buffer's frames are added to the statistics of the
    agent's normalizers. Training does not change them.

    Training does not change the frames, so checkpoints leave them out: fill the buffer
    in the same way before a run is resumed. Only a prioritized buffer is saved, for its
    priorities.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffer_lib.ReplayBuffer,
        *,
        train_steps_per_iteration: int = 1,
        sample_batch_size: int = 256,
        sequence_length: int | None = None,
        seed: int | None = None,
        jit_compile: bool | Literal["auto"] = False,
        priority_fn: replay_updates.PriorityFn | None = None,
    ) -> None:
        """Creates the loop.

        Args:
          agent: The agent.
          replay_buffer: The buffer of the recorded frames, in variables, with the
            agent's `collect_data_spec`, such as a `TFUniformReplayBuffer` or a
            `TFPrioritizedReplayBuffer`.
          train_steps_per_iteration: The number of updates in an iteration.
          sample_batch_size: The number of examples in an update.
          sequence_length: The number of frames in an example. None takes the agent's
            `train_sequence_length`; if that is None, too, an example is one frame, as a
            `BehavioralCloningAgent` expects it.
          seed: Seed of the batches. The batch of update n only depends on the seed and
            n. None draws a seed.
          jit_compile: Whether XLA compiles the whole call into one program; see
            `CollectingLoop`.
          priority_fn: See `OffPolicyLoop`.

        Raises:
          ValueError: A number is not positive, the buffer cannot draw from a seed or
            holds too few frames for one example, specs do not match, or `jit_compile`
            is True and the loop cannot be compiled.
          TypeError: A number is not an integer, or a part is of another kind.
        """
        loop_checks.check_agent(agent)
        loop_checks.check_replay_buffer(replay_buffer)
        loop_checks.check_data_spec(replay_buffer, agent)
        for name, value in (
            ("train_steps_per_iteration", train_steps_per_iteration),
            ("sample_batch_size", sample_batch_size),
        ):
            number_checks.check_integer(name, value, 1, remedy="give a positive number")
        self._num_steps = agent.train_sequence_length
        if sequence_length is not None:
            self._num_steps = loop_checks.check_sequence_length(sequence_length, agent)
        _check_contents(replay_buffer, self._num_steps or 1)
        placed = placement.placement_of(agent.variables(), calls_python=False)
        obstacle = jit_compile and (
            loop_checks.obstacle_without_environment(replay_buffer)
            or loop_checks.misplaced(
                agent, [("a replay buffer", replay_buffer, False)], placed
            )
        )
        super().__init__(
            agent,
            replay_buffer,
            seed,
            loop_checks.resolve_compilation(jit_compile, obstacle),
            placed,
        )
        self._train_steps = train_steps_per_iteration
        self._batch_size = sample_batch_size
        self._priority_fn = priority_fn
        if agent.observation_normalizer or agent.reward_normalizer:
            agent.update_normalizers(replay_buffer.gather_all())

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save so that a run can be resumed, by name.

        A uniform buffer is left out in any case.
        """
        changes = self._replay_buffer.is_prioritized
        return super().checkpoint_items(include_replay_buffer and changes)

    def replay_size(self) -> int:
        """Returns the number of frames in the replay buffer."""
        return int(self._replay_buffer.num_frames())

    def can_draw_for_log(self) -> bool:
        """Whether `draw_for_log` can be called now: always."""
        return True

    def draw_for_log(self) -> types.NestedTensor | None:
        """Returns a batch drawn as in training, but with a separate seed."""
        return self._draw(tf.stack([self._seed, -1 - self._iteration]))[0]

    def _draw(self, seed: tf.Tensor) -> tuple[Any, Any]:
        return self._replay_buffer.sample(self._batch_size, self._num_steps, seed)

    def _advance(self, position: tuple[Any, ...]) -> tuple[tuple[Any, ...], tf.Tensor]:
        (loss_sum,) = self._transform.repeat(
            self._train_steps, self._update, (tf.constant(0.0),)
        )
        return position, loss_sum / self._train_steps

    def _update(self, i: tf.Tensor, loss_sum: tf.Tensor) -> tuple[tf.Tensor]:
        """Draws a batch and trains with it; sets its priorities if there are any."""
        del i
        sample = self._draw(self._step_seed())
        loss_info = replay_updates.train_on(
            self._agent, self._replay_buffer, *sample, priority_fn=self._priority_fn
        )
        return (loss_sum + loss_info.loss,)


def _check_contents(
    replay_buffer: replay_buffer_lib.ReplayBuffer, num_steps: int
) -> None:
    """Raises a ValueError unless examples of `num_steps` frames can be drawn."""
    if not replay_buffer.draws_by_seed:
        raise ValueError(
            f"replay_buffer: got a {type(replay_buffer).__name__}, expected one that "
            "draws from a seed, such as a TFUniformReplayBuffer, into which "
            "datasets.fill copies its frames."
        )
    held = int(replay_buffer.num_frames()) // (replay_buffer.batch_size or 1)
    if held < num_steps:
        raise ValueError(
            f"replay_buffer: got {held} frame(s) of each environment, expected at "
            f"least {num_steps}, the length of an example; fill it before the loop is "
            "made, for instance with datasets.fill."
        )
