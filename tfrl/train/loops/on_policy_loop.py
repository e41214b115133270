"""The training loop of agents that learn from fresh rollouts, such as PPO and A2C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, stored_values, variable_substitution
from tfrl.environments import tf_environment
from tfrl.specs import tensor_spec
from tfrl.train.loops import collecting_loop, loop_checks, rollouts
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common, number_checks
from tfrl.utils.random_numbers import permutations

if TYPE_CHECKING:
    from tfrl.typing import types

# A minibatch whose KL divergence is this many times the target is the last one.
_KL_TOLERANCE = 1.5


class OnPolicyLoop(collecting_loop.CollectingLoop):
    """Collects a rollout, trains on it for some epochs and discards it, repeatedly.

    An iteration takes T = `collect_steps_per_iteration` steps of the batched
    environment with the current policy, which are `[B, T]` frames. The agent's
    `preprocess_sequence` adds its training data, such as advantages. Then come
    `num_epochs` epochs. In each of them, every frame is in exactly one minibatch, and a
    new seeded permutation shuffles the frames. The statistics of the agent's
    normalizers change after the epochs, so that training normalizes the observations as
    the policy did.

    The rounds of a bandit are rows of their own; its agent gets `[B, T]` frames.

    Episodes continue from one rollout to the next. At a rollout's end the agent gets
    the last time step, and bootstraps its value.

    A minibatch of an agent with recurrent networks consists of sequences: the whole
    rollouts of some environments, or pieces of `sequence_length` frames. Training
    starts from the policy's state before the first frame of each sequence, as it was
    when the frame was collected.

    Actions of unbounded distributions can leave the bounds of their spec. The frames
    hold the actions as they were drawn; the environment gets actions clipped to the
    bounds.
    """

    supports_sweep = True

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        observers: Sequence[types.Observer] = (),
        *,
        collect_steps_per_iteration: int,
        num_epochs: int = 1,
        minibatch_size: int | None = None,
        sequence_length: int | None = None,
        target_kl: float | None = None,
        seed: int | None = None,
        jit_compile: bool | Literal["auto"] = False,
    ) -> None:
        """Creates the loop.

        Args:
          environment: See `CollectingLoop`.
          agent: See `CollectingLoop`. A `PPOAgent` needs `num_epochs=1`,
            `compute_value_and_advantage_in_train=False` and
            `update_normalizers_in_train=False`, because the loop does this work. An
            agent that computes advantages in `train` gets the whole rollout instead,
            `[B, T + 1, ...]`, once an iteration.
          observers: See `CollectingLoop`.
          collect_steps_per_iteration: The number of steps of the batched environment in
            an iteration. A member of the batch that is reset in such a step does not
            take an environment step.
          num_epochs: The number of times that an iteration trains on each of its
            frames.
          minibatch_size: The number of frames in an update, a divisor of the number of
            frames in an iteration; for an agent with recurrent networks, it is also a
            multiple of `sequence_length`. None trains on all frames in one update, `[B,
            T, ...]`, as A2C does.
          sequence_length: The number of frames in a sequence for recurrent networks, a
            divisor of `collect_steps_per_iteration`. None takes whole rollouts.
          target_kl: The target of the KL divergence between the collecting policy and
            the trained policy. If the divergence of a minibatch,
            `LossInfo.extra.approx_kl`, is more than 1.5 times the target, the iteration
            ends with this minibatch. None does all updates.
          seed: See `CollectingLoop`.
          jit_compile: See `CollectingLoop`.

        Raises:
          ValueError: A number is not positive, `minibatch_size` does not divide the
            frames of an iteration, or `sequence_length` the steps; the agent's way of
            training does not fit the loop; or specs do not match.
          TypeError: A number is not an integer, or a part is of another kind.
        """
        super().__init__(environment, agent, None, observers, seed, jit_compile)
        for name, value in (
            ("collect_steps_per_iteration", collect_steps_per_iteration),
            ("num_epochs", num_epochs),
            ("minibatch_size", 1 if minibatch_size is None else minibatch_size),
            ("sequence_length", 1 if sequence_length is None else sequence_length),
        ):
            number_checks.check_integer(name, value, 1, remedy="give a positive number")
        if target_kl is not None:
            number_checks.check_number(
                "target_kl",
                target_kl,
                0,
                excludes_low=True,
                remedy="give a positive number, such as 0.01, or None",
            )
        self._num_steps = collect_steps_per_iteration
        self._num_epochs = num_epochs
        self._minibatch_size = minibatch_size
        self._target_kl = target_kl
        self._agent_updates_normalizers = getattr(
            agent, "update_normalizers_in_train", False
        )
        # With one update, an agent ends the iteration itself.
        self._ends_iterations = hasattr(agent, "end_iteration") and (
            num_epochs > 1 or minibatch_size is not None
        )
        self._is_recurrent = agent.collect_policy.is_recurrent
        loop_checks.check_on_policy_agent(
            agent, num_epochs, minibatch_size, sequence_length
        )
        if sequence_length is not None:
            loop_checks.check_piece_length(
                sequence_length, self._num_steps, self._is_recurrent
            )
        self._sequence_length = sequence_length
        self._row_length = 1
        if self._is_recurrent:
            self._row_length = sequence_length or self._num_steps
        batch_size = environment.batch_size
        if minibatch_size is not None:
            loop_checks.check_minibatch_size(
                minibatch_size, batch_size, self._num_steps, self._row_length
            )
        # The last minibatch of the last iteration, for the log. With recurrent
        # networks, the numbers for the log would need the policy's state, too. For an
        # agent that computes advantages in train, it includes the last time step.
        num_frames = self._num_steps + getattr(
            agent, "compute_value_and_advantage_in_train", False
        )
        outer_dims = [batch_size, num_frames]
        if minibatch_size is not None:
            outer_dims = [minibatch_size, 1]
        with tf.device(self._placement.device):
            self._last_minibatch = stored_values.StoredNest(
                ()
                if self._is_recurrent
                else tensor_spec.add_outer_dims_nest(
                    agent.training_data_spec, outer_dims
                )
            )
        self._collect_on_host = self._placement.on_host(
            self._collect, self._copied_weights, self._jit_compile
        )
        self._learn_on_device = self._placement.on_device(
            self._learn, self._jit_compile
        )

    @property
    def most_steps_per_iteration(self) -> int:
        """The steps of an iteration without the boundaries of episodes."""
        return self._num_steps * self._environment.batch_size

    def can_draw_for_log(self) -> bool:
        """Whether there was an iteration, and the agent is not recurrent."""
        has_trained = self.trace_count() > 0 and self.iteration > 0
        return has_trained and not self._is_recurrent

    def draw_for_log(self) -> types.NestedTensor | None:
        """Returns the last minibatch of the last iteration.

        Without minibatches, this is all training data, `[B, T, ...]` or `[B, T + 1,
        ...]`.
        """
        return self._last_minibatch.read()

    def iterate(
        self, time_step: types.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[types.TimeStep, types.NestedTensor, tf.Tensor]:
        """Collects a rollout and trains on it."""
        time_step, policy_state, frames, states, seed = self._collect_on_host(
            time_step, policy_state
        )

        def learn() -> tf.Tensor:
            return self._learn_on_device(frames, time_step, states, seed)

        if not (self._jit_compile and self.calls_python):
            return time_step, policy_state, learn()
        # The steps after an exception are not real.
        loss = tf.cond(self._has_failed(), lambda: tf.constant(0.0), learn)
        return time_step, policy_state, loss

    def _environment_action(self, action: Any) -> Any:
        return rollouts.clipped(action, self._environment.action_spec())

    def _collect(self, time_step: Any, policy_state: Any) -> tuple[Any, ...]:
        """Takes an iteration's steps.

        Returns:
          The last time step and policy state; the frames `[T, B, ...]`; the policy
          states before the sequences, `[B, ...]` or for pieces `[B, pieces, ...]`; and
          a seed for the minibatches.
        """
        start = policy_state
        in_pieces = self._sequence_length is not None
        time_step, policy_state, frames, states = self._scan_steps(
            self._num_steps, time_step, policy_state, keeps_states=in_pieces
        )
        if in_pieces:
            start = self._transform.apply(self._before_pieces, states)
        seed = self._transform.apply(self._seed_now)
        return time_step, policy_state, frames, start, seed

    def _before_pieces(self, states: Any) -> Any:
        """Returns the policy states before pieces, from those before all frames.

        States `[T, B, ...]` give `[B, pieces, ...]`.
        """

        def every(state: tf.Tensor) -> tf.Tensor:
            return common.transpose_batch_time(state[:: self._sequence_length])

        return accelerators.map_moved(every, states)

    def _seed_now(self) -> tf.Tensor:
        """Returns a seed for the current step that differs from all steps' seeds."""
        return tf.stack([self._seed.read_value(), -1 - self._step.read_value()])

    def _learn(
        self,
        frames: trajectory.Trajectory,
        reached: ts.TimeStep,
        policy_state: Any,
        seed: tf.Tensor,
    ) -> tf.Tensor:
        """Trains on a rollout; returns the mean loss of the updates.

        Args:
          frames: Frames `[T, B, ...]`.
          reached: The time step after the last frames, `[B, ...]`.
          policy_state: The policy's states before the sequences; see `_collect`.
          seed: The seed of the minibatches.
        """
        if self._environment.is_bandit:
            frames = self._transform.apply(rollouts.batch_major, frames)
        else:
            frames = self._transform.apply(rollouts.with_reached, frames, reached)
        experience = self._transform.apply(self._prepare, frames, policy_state)
        rows = self._transform.apply(self._minibatch_rows, seed)
        start = [
            self._transform.broadcast(tf.constant(value)) for value in (0.0, 0.0, True)
        ]
        loss_sum, num_updates, _ = self._transform.repeat(
            self._num_epochs * self._num_minibatches(),
            self._update,
            tuple(start),
            (experience, rows),
        )
        return self._transform.apply(
            self._finish, frames, experience, rows, loss_sum, num_updates
        )

    def _num_minibatches(self) -> int:
        if self._minibatch_size is None:
            return 1
        return self._environment.batch_size * self._num_steps // self._minibatch_size

    def _prepare(
        self, frames: trajectory.Trajectory, policy_state: Any
    ) -> tuple[Any, Any]:
        """Returns the training data and policy states, as rows for minibatches.

        A row is one frame `[1, ...]`, or a sequence `[T, ...]`.
        """
        if not self._is_recurrent:
            experience = self._agent.preprocess_sequence(frames)
            if self._minibatch_size is not None:
                experience = tf.nest.map_structure(self._as_rows, experience)
            return experience, ()
        start = policy_state
        if self._sequence_length is not None:
            start = accelerators.map_moved(lambda state: state[:, 0], policy_state)
            policy_state = tf.nest.map_structure(_joined, policy_state)
        experience = self._agent.preprocess_sequence(frames, policy_state=start)
        if self._sequence_length is not None:
            experience = tf.nest.map_structure(self._as_rows, experience)
        return experience, policy_state

    def _as_rows(self, column: tf.Tensor) -> tf.Tensor:
        """Reshapes a column `[B, T, ...]` to rows `[rows, row length, ...]`."""
        shape = [-1, self._row_length, *column.shape[2:]]
        return accelerators.moved(lambda column: tf.reshape(column, shape), column)

    def _minibatch_rows(self, seed: tf.Tensor) -> tf.Tensor:
        """Returns the rows of each update's minibatch, int32 `[updates, rows]`."""
        if self._minibatch_size is None:
            return tf.zeros([self._num_epochs, 0], tf.int32)
        num_rows = self._environment.batch_size * self._num_steps // self._row_length
        order = permutations.permutations(seed, self._num_epochs, num_rows)
        shape = [self._num_epochs * self._num_minibatches(), -1]
        return accelerators.moved(lambda order: tf.reshape(order, shape), order)

    def _update(
        self,
        i: tf.Tensor,
        loss_sum: tf.Tensor,
        num_updates: tf.Tensor,
        goes_on: tf.Tensor,
        data: tuple[Any, Any],
        rows: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Trains with the minibatch of update `i`, unless the iteration has ended."""
        experience, policy_state = self._minibatch(data, _row(rows, i))

        def train() -> Any:
            kwargs = {"policy_state": policy_state} if self._is_recurrent else {}
            if self._ends_iterations:
                kwargs["ends_iteration"] = False
            return self._agent.train(experience, **kwargs)

        if self._target_kl is None:
            return loss_sum + train().loss, num_updates + 1.0, goes_on
        largest_kl = _KL_TOLERANCE * self._target_kl

        def train_and_compare() -> tuple[tf.Tensor, tf.Tensor]:
            loss, extra = train()
            if not hasattr(extra, "approx_kl"):
                raise ValueError(
                    f"target_kl: got {self._target_kl} for a "
                    f"{type(self._agent).__name__}, whose LossInfo.extra has no "
                    "approx_kl, expected None; leave it out."
                )
            return loss, extra.approx_kl <= largest_kl

        loss, is_near = variable_substitution.cond(
            goes_on, train_and_compare, (tf.constant(0.0), tf.constant(False))
        )
        return loss_sum + loss, num_updates + tf.cast(goes_on, tf.float32), is_near

    def _minibatch(self, data: tuple[Any, Any], rows: tf.Tensor) -> tuple[Any, Any]:
        """Returns rows of the training data and of the policy states."""
        if self._minibatch_size is None:
            return data
        return tf.nest.map_structure(lambda t: tf.gather(t, rows), data)

    def _finish(
        self,
        frames: trajectory.Trajectory,
        data: tuple[Any, Any],
        rows: tf.Tensor,
        loss_sum: tf.Tensor,
        num_updates: tf.Tensor,
    ) -> tf.Tensor:
        """Ends an iteration after its updates; returns the updates' mean loss."""
        if self._ends_iterations:
            experience, policy_state = data
            self._agent.end_iteration([experience], policy_state)
        if not self._is_recurrent:
            minibatch, _ = self._minibatch(data, _row(rows, -1))
            self._last_minibatch.assign(minibatch)
        if not self._agent_updates_normalizers:
            collected = frames
            if not self._environment.is_bandit:
                collected = accelerators.map_moved(lambda t: t[:, :-1], frames)
            self._agent.update_normalizers(collected)
        return loss_sum / num_updates


def _row(rows: tf.Tensor, i: tf.Tensor | int) -> tf.Tensor:
    return accelerators.moved(lambda rows: rows[i], rows)


def _joined(states: tf.Tensor) -> tf.Tensor:
    """Reshapes states `[B, pieces, ...]` to `[B pieces, ...]`."""
    shape = [-1, *states.shape[2:]]
    return accelerators.moved(lambda states: tf.reshape(states, shape), states)
