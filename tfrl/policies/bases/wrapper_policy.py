"""The base class of policies that wrap another policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies import tf_policy
from tfrl.typing import types


class WrapperPolicy(tf_policy.TFPolicy):
    """Base class of policies that wrap a policy and have its specs and flags.

    The wrapped policy also gives the variables and the initial state. A subclass
    implements `_action` or `_distribution`, as for any `TFPolicy`.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        name: str | None = None,
        *,
        seed: int | None = None,
        **differences: Any,
    ) -> None:
        """Creates the policy.

        Args:
          policy: The policy to wrap.
          name: The module's name.
          seed: See `TFPolicy`.
          **differences: Arguments of `TFPolicy` to use instead of the wrapped policy's
            values.
        """
        arguments = {
            "policy_state_spec": policy.policy_state_spec,
            "info_spec": policy.info_spec,
            "clip": policy._clip,
            "emit_log_probability": policy.emit_log_probability,
            "automatic_state_reset": policy._automatic_state_reset,
            "observation_and_action_constraint_splitter": (
                policy.observation_and_action_constraint_splitter
            ),
            "validate_args": policy.validate_args,
            **differences,
        }
        super().__init__(
            policy.time_step_spec,
            policy.action_spec,
            name=name,
            seed=seed,
            **arguments,
        )
        self._wrapped_policy = policy
        self._greedy_action_needs_clip = policy._greedy_action_needs_clip

    @property
    def wrapped_policy(self) -> tf_policy.TFPolicy:
        """The wrapped policy."""
        return self._wrapped_policy

    def network_state(self, policy_state: Any) -> Any:
        """Returns the wrapped policy's part; see `TFPolicy.network_state`."""
        return self._wrapped_policy.network_state(policy_state)

    def prepare(self, batch_size: int | None) -> None:
        """Prepares the wrapped policy; see `TFPolicy.prepare`."""
        self._wrapped_policy.prepare(batch_size)

    def _variables(self) -> Sequence[Any]:
        return self._wrapped_policy.variables()

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        return self._wrapped_policy.get_initial_state(batch_size)
