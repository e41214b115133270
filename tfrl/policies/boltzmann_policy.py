"""A policy that samples from another policy's logits at a temperature."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.policies import bases, tf_policy, utils
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.optimization import schedules


class BoltzmannPolicy(bases.WrapperPolicy):
    """Samples actions from the wrapped policy's logits, divided by a temperature.

    A temperature near 0 gives the greedy action, 1 gives the wrapped policy itself, and
    a high temperature explores almost uniformly.
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
            unchanged.
          name: The module's name.
          step: The variable that a schedule given as `temperature` follows, such as an
            agent's `train_step_counter`.
          seed: See `TFPolicy`.

        Raises:
          ValueError: `temperature` is a number that is not positive, or a schedule
            without `step`.
        """
        number_checks.check_number(
            "temperature",
            temperature,
            0,
            excludes_low=True,
            optional=True,
            remedy="use GreedyPolicy for the limit of 0",
        )
        super().__init__(policy, name, seed=seed, clip=False)
        self._temperature = schedules.follow("temperature", temperature, step)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        # Dividing the logits by a positive temperature does not change the mode.
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
