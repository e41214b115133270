"""A policy that explores discrete actions by noise on their shares."""

from __future__ import annotations

import tensorflow as tf

from tfrl.agents import unit_actions
from tfrl.policies import bases, tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.optimization import schedules


class NoisyChoicePolicy(bases.WrapperPolicy):
    """Takes the action with the largest share of a Gumbel softmax, with normal noise.

    Fujimoto et al., "Towards general-purpose model-free reinforcement learning" (2025,
    arXiv:2501.16142), section 4.2.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        actions: unit_actions.Choice,
        scale: types.FloatOrSchedule,
        *,
        step: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: A policy of categorical distributions.
          actions: The actions.
          scale: The standard deviation of the noise, in `actions.noise_unit`s; see
            `GaussianPolicy`.
          step: The variable that a schedule given as `scale` follows.
          seed: See `TFPolicy`.
        """
        super().__init__(policy, seed=seed, emit_log_probability=False)
        self._set_untracked("_actions", actions)
        self._scale = schedules.follow("scale", scale, step)

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is NoisyChoicePolicy
            and not callable(self._scale)
            and self._wrapped_policy._is_pure_tensorflow()
        )

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._wrapped_policy._greedy_action(time_step, policy_state)

    def _action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor, seed: tf.Tensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._distribution(time_step, policy_state)
        scale = schedules.current_value(self._scale)
        logits = step.action.logits_parameter()
        chosen = self._actions.smoothed(logits, seed, scale)
        return step._replace(action=self._actions.actions(chosen))
