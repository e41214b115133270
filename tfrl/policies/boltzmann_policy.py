"""Softer or sharper sampling from another policy's logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.policies import tf_policy, utils, wrapper_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.utils import schedules

if TYPE_CHECKING:
    from tfrl.typing import types


class BoltzmannPolicy(wrapper_policy.WrapperPolicy):
    """Samples with the wrapped policy's logits divided by a temperature.

    Near 0 that is the greedy action, at 1 the wrapped policy itself, and a high
    temperature explores almost uniformly.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        temperature: types.FloatOrSchedule | None = 1.0,
        name: str | None = None,
        *,
        step: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: A policy with distributions that have logits.
          temperature: A positive number, a scalar tensor or variable, a callable that
            returns one of these, or a Keras schedule of `step`; None leaves the logits
            alone.
          name: The module's name.
          step: The variable that a schedule given as `temperature` follows, such as an
            agent's `train_step_counter`.
          seed: See `TFPolicy`.

        Raises:
          ValueError: A number `temperature` that is not positive, or a schedule without
            `step`.
        """
        utils.check_positive(
            "temperature", temperature, "use GreedyPolicy for the limit of 0."
        )
        super().__init__(policy, name, seed=seed, clip=False)
        self._temperature = schedules.follow("temperature", temperature, step)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        # No positive temperature moves the mode.
        return self._wrapped_policy._greedy_action(time_step, policy_state)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._distribution(
            time_step=time_step, policy_state=policy_state
        )
        if self._temperature is None:
            return step
        temperature = schedules.current_value(self._temperature)

        def soften(distribution: Any) -> Any:
            return distribution.copy(
                logits=utils.divide_logits(distribution.logits, temperature)
            )

        return step._replace(action=tf.nest.map_structure(soften, step.action))
