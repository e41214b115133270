"""A policy that takes a moving average of another policy's continuous actions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.policies import bases, tf_policy, utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class TemporalActionSmoothing(bases.WrapperPolicy):
    """Takes the exponential moving average of the wrapped policy's actions.

    The average begins at 0 in each episode, and each step sets it to
    `smoothing_coefficient * average + (1 - smoothing_coefficient) * action`. The policy
    state is the pair of the wrapped policy's state and the average, which has the specs
    of the action. `info` comes from the wrapped policy.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        smoothing_coefficient: float,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: A policy whose actions are all floats.
          smoothing_coefficient: A number in [0, 1]; 0 does not change the actions.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: An action is discrete, or `smoothing_coefficient` is outside
            [0, 1].
        """
        utils.check_continuous(policy.action_spec, type(self).__name__)
        number_checks.check_number(
            "smoothing_coefficient",
            smoothing_coefficient,
            0,
            1,
            remedy="0 does not smooth at all",
        )
        self._needs_seed = policy._needs_seed
        super().__init__(
            policy,
            name,
            seed=seed,
            policy_state_spec=(policy.policy_state_spec, policy.action_spec),
            clip=True,
            emit_log_probability=False,
            automatic_state_reset=True,
        )
        self._smoothing_coefficient = smoothing_coefficient
        # The average begins at 0, which may be outside the bounds.
        self._greedy_action_needs_clip = True

    def network_state(self, policy_state: Any) -> Any:
        """Returns the state without the average; see `TFPolicy.network_state`."""
        return super().network_state(policy_state[0] if policy_state else ())

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        average = tensor_spec.zero_spec_nest(
            self._action_spec, outer_dims=None if batch_size is None else [batch_size]
        )
        return super()._get_initial_state(batch_size), average

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        wrapped_state, average = policy_state
        return self._smoothed(
            self._wrapped_policy.action(time_step, wrapped_state, seed), average
        )

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        wrapped_state, average = policy_state
        return self._smoothed(
            self._wrapped_policy._greedy_action(time_step, wrapped_state), average
        )

    def _smoothed(
        self, step: policy_step.PolicyStep, average: types.NestedTensor
    ) -> policy_step.PolicyStep:
        def smooth(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
            keep = tf.cast(self._smoothing_coefficient, new.dtype)
            return keep * old + (1 - keep) * new

        smoothed = tf.nest.map_structure(smooth, average, step.action)
        return step._replace(action=smoothed, state=(step.state, smoothed))
