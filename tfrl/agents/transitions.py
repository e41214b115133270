"""The transitions that agents learn from, with masks, n steps and unrolled sequences.

The output of a recurrent network at a step depends on all earlier steps. So the network
is unrolled over whole sequences, even to compute the values of the next steps.

A sequence may begin in mid-episode. The network then starts from the state that the
policy recorded there (`first_state`), which was computed with older weights. The first
steps of a sequence can serve as a burn-in, which only brings the state up to date
(`split`); see Kapturowski et al., "Recurrent experience replay in distributed
reinforcement learning" (2019, R2D2), section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from tfrl import losses
from tfrl.agents import data_converter
from tfrl.compilation import accelerators
from tfrl.losses import masking
from tfrl.policies import state_recording_policy
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

if TYPE_CHECKING:
    from tfrl.agents import options
    from tfrl.typing import types


class Transitions(NamedTuple):
    """Transitions for the losses, `[B, ...]`.

    For recurrent networks all shapes are `[B, T - 1, ...]`, except that
    `next_time_step` holds all `T` steps. The first one only updates the network's
    state.

    Attributes:
      time_step: The time steps at which the actions were taken.
      action: The nest of actions.
      next_time_step: The time steps after them.
      reward: The rewards over the steps of the return, times `reward_scale_factor`; 0
        where masked.
      discount: Gamma times the environment's discounts; 0 where masked.
      valid: False where a transition is masked: at boundaries, and before a cut.
      info: The info of the actions.
      states: The states from which recurrent networks start; None for their initial
        states.
      unrolled_steps: The number of steps in the returns of unrolled networks; None if
        networks are not unrolled.
      loss_fn: The loss of (targets, predictions), element by element, that a caller
        gives to `DqnAgent._loss`; the agent's own by default.
    """

    time_step: ts.TimeStep
    action: Any
    next_time_step: ts.TimeStep
    reward: tf.Tensor
    discount: tf.Tensor
    valid: tf.Tensor
    info: Any = ()
    states: Any = ()
    unrolled_steps: int | None = None
    loss_fn: Any = None

    def at_next(self, output: Any) -> Any:
        """Picks a network's outputs for the states at which the returns end.

        Args:
          output: The network's output for `next_time_step`, `[B, ...]` or `[B, T,
            ...]`.

        Returns:
          `[B, ...]`, or `[B, T - 1, ...]`: the first of `T` steps is never a next step,
          and the others move by `n - 1` steps, for n-step returns.
        """
        if self.unrolled_steps is None:
            return output
        return after_n_steps(output[:, 1:], self.valid, self.unrolled_steps)

    def targets(self, next_values: tf.Tensor) -> tf.Tensor:
        """Returns `r + gamma d v`, without gradient, `[B]` or `[B, T - 1]`.

        Args:
          next_values: The values v of `next_time_step`, `[B]` or `[B, T]`.
        """
        return losses.td_target(self.reward, self.discount, self.at_next(next_values))

    def per_example(self, values: tf.Tensor) -> tf.Tensor:
        """Returns numbers of each example, `[B]`, with 0 for masked transitions.

        For recurrent networks the numbers are summed over time.
        """
        values = masking.masked(values, self.valid)
        if self.unrolled_steps is None:
            return values
        return tf.reduce_sum(values, axis=1)


class Reader(tf.Module):
    """Turns an agent's experience into transitions, according to the agent's settings.

    Attributes:
      convert: Turns experience into a `Transition`. For networks with a state the time
        dimension is kept; for others the n steps become one transition.
    """

    def __init__(
        self,
        context: data_converter.DataContext,
        td: options.TdOptions,
        recurrent: bool,
    ) -> None:
        """Stores the settings.

        Args:
          context: The specs of the experience.
          td: The discount, the factor of the rewards and the number of steps.
          recurrent: Whether the networks have a state, and so are unrolled.
        """
        super().__init__()
        self.convert = (
            data_converter.AsTransition(context, squeeze_time_dim=False)
            if recurrent
            else data_converter.AsNStepTransition(
                context, gamma=td.gamma, n=td.n_step_update
            )
        )
        self._td = td
        self._unrolled_steps = td.n_step_update if recurrent else None

    def __call__(
        self,
        experience: types.NestedTensor,
        gamma: types.Float | None = None,
        reward_scale_factor: types.Float | None = None,
    ) -> Transitions:
        """Returns the transitions of experience; the arguments are as for `of`."""
        return self.of(self.convert(experience), gamma, reward_scale_factor)

    def of(
        self,
        transition: trajectory.Transition,
        gamma: types.Float | None = None,
        reward_scale_factor: types.Float | None = None,
    ) -> Transitions:
        """Masks rewards and discounts, and arranges sequences for recurrent networks.

        Args:
          transition: A `Transition` such as `convert` returns.
          gamma: The discount factor; the agent's if None.
          reward_scale_factor: The factor of the rewards; the agent's if None.
        """
        if gamma is None:
            gamma = self._td.gamma
        if reward_scale_factor is None:
            reward_scale_factor = self._td.reward_scale_factor
        time_step, action_step, reached = transition
        # Boundaries count in the means with a loss of zero. Dividing by the number of
        # valid transitions would give more weight to batches with many boundaries.
        valid = ~time_step.is_last()
        # The inputs of the losses are masked, too: the gradient of a loss that is not
        # finite would be NaN even where the loss is multiplied by zero.
        reward = tf.cast(reached.reward, tf.float32)
        reward = masking.masked(reward_scale_factor * reward, valid)
        discount = masking.masked(gamma * reached.discount, valid)
        num_steps = self._unrolled_steps
        if num_steps is not None:
            if num_steps > 1:
                reward, discount = n_step_sums(reward, discount, valid, num_steps)
            reached = whole_sequence(time_step, reached)
            time_step = current_steps(time_step)
        return Transitions(
            time_step,
            action_step.action,
            reached,
            reward,
            discount,
            valid,
            action_step.info,
            unrolled_steps=num_steps,
        )


def first_state(
    info: types.NestedTensor, state_spec: types.NestedTensorSpec
) -> types.NestedTensor:
    """Returns the state before the first step that the policy recorded, `[B, ...]`.

    Args:
      info: The info of the actions, `[B, T, ...]`.
      state_spec: The nest of specs of the state.

    Returns:
      The state; `()` if the policy did not record it.
    """
    recorded = state_recording_policy.recorded_state(info, state_spec)
    return accelerators.map_moved(lambda states: states[:, 0], recorded)


def split(
    transition: trajectory.Transition, num_steps: int
) -> tuple[ts.TimeStep, trajectory.Transition]:
    """Splits transitions `[B, T - 1]` into a burn-in and the rest, to learn from.

    Args:
      transition: The transitions, which have no state.
      num_steps: The number of steps of the burn-in.

    Returns:
      The time steps of the burn-in, `[B, num_steps]`, and the transitions after it.

    Raises:
      ValueError: No transition would be left.
    """
    length = transition.time_step.step_type.shape[1]
    if length is not None and length <= num_steps:
        raise ValueError(
            f"experience: got {length + 1} frames, expected at least {num_steps + 2}: "
            f"{num_steps} of the burn-in and 2 to learn from; give the loop a longer "
            "sequence_length, or the agent a shorter burn-in."
        )
    transition = transition._replace(time_step=current_steps(transition.time_step))
    return (
        accelerators.map_moved(lambda t: t[:, :num_steps], transition.time_step),
        accelerators.map_moved(lambda t: t[:, num_steps:], transition),
    )


def current_steps(time_step: ts.TimeStep) -> ts.TimeStep:
    """Returns the steps `[B, T - 1]` at which actions are taken.

    The step after a masked step (a boundary, or a step before a cut) starts a new
    sequence, unless it is masked itself; then it stays masked.
    """
    masked = time_step.is_last()
    starts = tf.pad(masked[:, :-1], [[0, 0], [1, 0]]) & ~masked
    return time_step._replace(
        step_type=tf.where(starts, ts.StepType.FIRST, time_step.step_type)
    )


def whole_sequence(time_step: ts.TimeStep, next_time_step: ts.TimeStep) -> ts.TimeStep:
    """Returns all `T` steps of `T - 1` consecutive transitions.

    Returns:
      A `TimeStep` `[B, T, ...]`: the first step of `time_step`, then all steps of
      `next_time_step`.
    """
    reached = next_time_step._replace(
        step_type=tf.where(
            time_step.is_last(), ts.StepType.FIRST, next_time_step.step_type
        )
    )
    return accelerators.map_moved(
        lambda first, others: tf.concat([first[:, :1], others], axis=1),
        time_step,
        reached,
    )


def n_step_sums(
    rewards: tf.Tensor, discounts: tf.Tensor, valid: tf.Tensor, n: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns each step's rewards over `n` steps, and the product of their discounts.

    The steps are fewer at the end of an episode, before a cut and at the end of the
    sequence. The product is the factor of the value that `after_n_steps` returns.
    Sutton and Barto, "Reinforcement Learning: An Introduction", 2018, equation 7.1.

    Args:
      rewards: The rewards, `[B, T - 1]`, 0 where masked.
      discounts: Gamma times the environment's discounts, like `rewards`.
      valid: False where a transition is masked, like `rewards`.
      n: The number of steps.
    """
    continues = tf.transpose(_continues(valid))
    r_t, discount_t = tf.transpose(rewards), tf.transpose(discounts)
    zeros, ones = tf.zeros_like(r_t), tf.ones_like(r_t)
    sums = losses.n_step_returns(r_t, discount_t, zeros, n, continues)
    products = losses.n_step_returns(zeros, discount_t, ones, n, continues)
    return tf.transpose(sums), tf.transpose(products)


def after_n_steps(values: tf.Tensor, valid: tf.Tensor, n: int) -> tf.Tensor:
    """Returns the values of the states at which the n-step returns end.

    Args:
      values: The value of the state after each step, `[B, T - 1, ...]`.
      valid: False where a transition is masked, `[B, T - 1]`.
      n: See `n_step_sums`.
    """
    continues = _continues(valid)[(..., *[tf.newaxis] * (values.shape.rank - 2))]
    result = values
    for _ in range(n - 1):
        following = tf.concat([result[:, 1:], values[:, -1:]], axis=1)
        result = tf.where(continues, following, values)
    return result


def _continues(valid: tf.Tensor) -> tf.Tensor:
    """Returns whether the next transition continues a transition's episode."""
    return valid & tf.pad(valid[:, 1:], [[0, 0], [0, 1]])
