"""A policy that acts without parts of the observations of another policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf
import tree

from tfrl.policies import bases, tf_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class PartialObservationPolicy(bases.WrapperPolicy):
    """Acts like the wrapped policy, for which some parts of observations are 0.

    It is for a policy whose network does not use these parts, such as what only the
    critics of its agent see: so it can be saved and served without them.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        unseen: Sequence[str],
        name: str | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: A policy whose observations are a dict.
          unseen: The keys of the parts that this policy's observations do not have.
          name: The module's name.

        Raises:
          ValueError: There is no such part, or no other one.
        """
        spec = policy.time_step_spec
        parts = spec.observation if isinstance(spec.observation, Mapping) else {}
        seen = {key: part for key, part in parts.items() if key not in unseen}
        if not (seen and set(unseen) <= parts.keys()):
            raise ValueError(
                f"unseen: got {list(unseen)}, expected some, but not all, of the keys "
                f"of the policy's observations, {list(parts)}; leave the others out."
            )
        self._needs_seed = policy._needs_seed
        super().__init__(policy, name, time_step_spec=spec._replace(observation=seen))
        self._set_untracked("_unseen", {key: parts[key] for key in unseen})

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        return self._wrapped_policy.action(self._whole(time_step), policy_state, seed)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        whole = self._whole(time_step)
        return self._wrapped_policy._greedy_action(whole, policy_state)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._wrapped_policy.distribution(self._whole(time_step), policy_state)

    def _is_pure_tensorflow(self) -> bool:
        is_own = type(self) is PartialObservationPolicy
        return is_own and self._wrapped_policy._is_pure_tensorflow()

    def _whole(self, time_step: ts.TimeStep) -> ts.TimeStep:
        """Returns a time step with the unseen parts, which are 0."""
        outer = tf.shape(time_step.step_type)
        zeros = tree.map_structure(
            lambda spec: tf.zeros(tf.concat([outer, spec.shape], axis=0), spec.dtype),
            self._unseen,
        )
        return time_step._replace(observation={**time_step.observation, **zeros})
