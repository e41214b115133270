"""A policy that takes the most probable action of another policy."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from typing_extensions import override

from tfrl.policies import bases, tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class GreedyPolicy(bases.WrapperPolicy):
    """Takes the mode of the wrapped policy's distribution, without randomness."""

    _needs_seed = False

    def __init__(self, policy: tf_policy.TFPolicy, name: str | None = None) -> None:
        """Creates the policy.

        Args:
          policy: The policy to make greedy.
          name: The module's name.
        """
        super().__init__(policy, name, clip=policy._greedy_action_needs_clip)

    @override
    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        return self._greedy_action(time_step, policy_state)

    def _is_pure_tensorflow(self) -> bool:
        return type(self) is GreedyPolicy and self._wrapped_policy._is_pure_tensorflow()

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._greedy_action(time_step, policy_state)
        if not self._emit_log_probability:
            return step
        # The greedy action has probability 1, so its log-probability is 0.
        certain = tf.zeros_like(time_step.step_type, tf.float32)
        info = policy_step.set_log_probability(
            step.info, tf.nest.map_structure(lambda _: certain, self._action_spec)
        )
        return step._replace(info=info)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        from tfrl.policies.acting import deterministic

        step = self._wrapped_policy._greedy_action(time_step, policy_state)
        return step._replace(
            action=tf.nest.map_structure(
                lambda mode: deterministic.DeterministicWithLogProb(loc=mode),
                step.action,
            )
        )


def __getattr__(name: str) -> Any:
    # TF-Agents has this class in this module. It is defined in another module, so that
    # acting greedily does not import TFP.
    if name == "DeterministicWithLogProb":
        from tfrl.policies.acting import deterministic

        return deterministic.DeterministicWithLogProb
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
