"""The most probable action of another policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.policies import tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.typing import types


class GreedyPolicy(tf_policy.TFPolicy):
    """Takes the mode of the wrapped policy's distribution, without randomness.

    Args:
      policy: the policy to make greedy.
      name: the module's name.
    """

    _needs_seed = False

    def __init__(self, policy: tf_policy.TFPolicy, name: str | None = None) -> None:
        super().__init__(
            policy.time_step_spec,
            policy.action_spec,
            policy.policy_state_spec,
            policy.info_spec,
            clip=policy._greedy_action_needs_clip,
            emit_log_probability=policy.emit_log_probability,
            automatic_state_reset=policy._automatic_state_reset,
            observation_and_action_constraint_splitter=(
                policy.observation_and_action_constraint_splitter
            ),
            validate_args=policy.validate_args,
            name=name,
        )
        self._wrapped_policy = policy
        self._greedy_action_needs_clip = policy._greedy_action_needs_clip

    @property
    def wrapped_policy(self) -> tf_policy.TFPolicy:
        """The policy that this one makes greedy."""
        return self._wrapped_policy

    def _variables(self) -> Sequence[Any]:
        return self._wrapped_policy.variables()

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        return self._wrapped_policy.get_initial_state(batch_size)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        return self._greedy_action(time_step, policy_state)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._greedy_action(time_step, policy_state)
        if not self._emit_log_probability:
            return step
        # The one action that is possible has probability 1.
        certain = tf.zeros_like(time_step.step_type, tf.float32)
        info = policy_step.set_log_probability(
            step.info, tf.nest.map_structure(lambda _: certain, self._action_spec)
        )
        return step._replace(info=info)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        from tfrl.policies import deterministic

        step = self._wrapped_policy._greedy_action(time_step, policy_state)
        return step._replace(
            action=tf.nest.map_structure(
                lambda mode: deterministic.DeterministicWithLogProb(loc=mode),
                step.action,
            )
        )


def __getattr__(name: str) -> Any:
    # Found here by TF-Agents' users, and made elsewhere, so that acting greedily does
    # not import TFP.
    if name == "DeterministicWithLogProb":
        from tfrl.policies import deterministic

        return deterministic.DeterministicWithLogProb
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
