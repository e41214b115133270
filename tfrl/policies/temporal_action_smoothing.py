"""Smooth continuous actions: a moving average of another policy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.policies import tf_policy, utils
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.typing import types


class TemporalActionSmoothing(tf_policy.TFPolicy):
    """Takes the exponential moving average of the wrapped policy's actions.

    `average <- smoothing_coefficient * average + (1 - smoothing_coefficient) * action`,
    from 0 at the beginning of an episode. The policy state is the pair of the wrapped
    policy's state and the average, which has the specs of the action. `info` is the
    wrapped policy's.

    Args:
      policy: a policy whose actions are all floats.
      smoothing_coefficient: a number in [0, 1]; 0 leaves the actions as they are.
      name: the module's name.
      seed: see `TFPolicy`.

    Raises:
      ValueError: some action is discrete, or the coefficient is outside [0, 1].
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        smoothing_coefficient: float,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        utils.check_continuous(policy.action_spec, type(self).__name__)
        utils.check_in_unit_interval(
            "smoothing_coefficient", smoothing_coefficient, "0 does not smooth at all."
        )
        super().__init__(
            policy.time_step_spec,
            policy.action_spec,
            (policy.policy_state_spec, policy.action_spec),
            policy.info_spec,
            observation_and_action_constraint_splitter=(
                policy.observation_and_action_constraint_splitter
            ),
            validate_args=policy.validate_args,
            name=name,
            seed=seed,
        )
        self._wrapped_policy = policy
        self._smoothing_coefficient = smoothing_coefficient
        self._needs_seed = policy._needs_seed

    @property
    def wrapped_policy(self) -> tf_policy.TFPolicy:
        """The policy whose actions are smoothed."""
        return self._wrapped_policy

    def _variables(self) -> Sequence[Any]:
        return self._wrapped_policy.variables()

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        _, average = super()._get_initial_state(batch_size)
        return self._wrapped_policy.get_initial_state(batch_size), average

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
