"""A policy that records its state, so that learners can start in mid-episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tree

from tfrl.policies import bases, tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types

# The entry of the info for the state before the action.
POLICY_STATE = "policy_state"


class StateRecordingPolicy(bases.WrapperPolicy):
    """Acts like the wrapped policy, and adds the state before the action to `info`.

    `PolicyStep.info` is a dictionary with the entry `policy_state`: the state from
    which the action was computed, which is the initial state where an episode begins.
    Lists in the state become tuples, since tf.data has no lists.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: A policy with a state, whose `info_spec` is `()`, a dict or a named
            tuple.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The policy has no state.
        """
        if not tf.nest.flatten(policy.policy_state_spec):
            raise ValueError(
                f"policy: got {policy.name!r}, which has no state, expected one with "
                "a recurrent network; use the policy itself."
            )
        self._needs_seed = policy._needs_seed
        info_spec = _with_state(policy.info_spec, policy.policy_state_spec)
        super().__init__(policy, name, seed=seed, info_spec=info_spec)

    def apply_value_network(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the wrapped policy's `apply_value_network`, which must exist."""
        return self._wrapped_policy.apply_value_network(*args, **kwargs)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._action(
            time_step=time_step, policy_state=policy_state, seed=seed
        )
        return step._replace(info=_with_state(step.info, policy_state))

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._greedy_action(time_step, policy_state)
        return step._replace(info=_with_state(step.info, policy_state))

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        step = self._wrapped_policy._distribution(
            time_step=time_step, policy_state=policy_state
        )
        return step._replace(info=_with_state(step.info, policy_state))

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is StateRecordingPolicy
            and self._wrapped_policy._is_pure_tensorflow()
        )


def recorded_state(info: Any, state_spec: Any) -> Any:
    """Returns the states that a policy recorded, `[B, ...]`; `()` if it did not.

    Args:
      info: The `PolicyStep.info` of a policy, or the `policy_info` of frames.
      state_spec: The nest of specs of the policy's state.
    """
    if not isinstance(info, Mapping) or POLICY_STATE not in info:
        return ()
    return tf.nest.pack_sequence_as(state_spec, tf.nest.flatten(info[POLICY_STATE]))


def _with_state(info: Any, state: Any) -> dict[str, Any]:
    """Returns an info, or its spec, as a dictionary with a state."""
    entries = info._asdict() if hasattr(info, "_asdict") else info or {}
    return {**entries, POLICY_STATE: _with_tuples(state)}


def _with_tuples(nest: Any) -> Any:
    """Returns a nest with tuples instead of lists."""

    def as_tuple(part: Any) -> tuple[Any, ...] | None:
        return tuple(part) if isinstance(part, list) else None

    return tree.traverse(as_tuple, nest, top_down=False)
