"""Softer or sharper sampling from another policy's logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.policies import tf_policy, utils
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.typing import types


class BoltzmannPolicy(tf_policy.TFPolicy):
    """Samples with the wrapped policy's logits divided by a temperature.

    Near 0 that is the greedy action, at 1 the wrapped policy itself, and a high
    temperature explores almost uniformly.

    Args:
      policy: a policy with distributions that have logits.
      temperature: a positive number, a scalar tensor or variable, or a callable that
        returns one of these; None leaves the logits alone.
      name: the module's name.
      seed: see `TFPolicy`.

    Raises:
      ValueError: a number `temperature` that is not positive.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        temperature: types.FloatOrReturningFloat | None = 1.0,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        utils.check_positive(
            "temperature", temperature, "use GreedyPolicy for the limit of 0."
        )
        super().__init__(
            policy.time_step_spec,
            policy.action_spec,
            policy.policy_state_spec,
            policy.info_spec,
            clip=False,
            emit_log_probability=policy.emit_log_probability,
            automatic_state_reset=policy._automatic_state_reset,
            observation_and_action_constraint_splitter=(
                policy.observation_and_action_constraint_splitter
            ),
            validate_args=policy.validate_args,
            name=name,
            seed=seed,
        )
        self._temperature = temperature
        self._wrapped_policy = policy
        self._greedy_action_needs_clip = policy._greedy_action_needs_clip

    @property
    def wrapped_policy(self) -> tf_policy.TFPolicy:
        """The policy whose logits are divided."""
        return self._wrapped_policy

    def _variables(self) -> Sequence[Any]:
        return self._wrapped_policy.variables()

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        return self._wrapped_policy.get_initial_state(batch_size)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        # No positive temperature moves the mode.
        return self._wrapped_policy._greedy_action(time_step, policy_state)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._distribution(time_step, policy_state)
        if self._temperature is None:
            return step
        temperature = utils.current_value(self._temperature)

        def soften(distribution: Any) -> Any:
            return distribution.copy(
                logits=utils.divide_logits(distribution.logits, temperature)
            )

        return step._replace(action=tf.nest.map_structure(soften, step.action))
