"""A policy that lets one of several policies choose each row's action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.distributions import sampling
from tfrl.policies import tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds

MIXTURE_AGENT_ID = "mixture_agent_id"
SUBPOLICY_INFO = "subpolicy_info"


class MixturePolicy(tf_policy.TFPolicy):
    """Draws a policy for each row, which chooses the action.

    The info is a dictionary of the number of the policy, int32 `[B]`, and of its info.
    """

    def __init__(
        self,
        mixture_distribution: Any,
        policies: Sequence[tf_policy.TFPolicy],
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          mixture_distribution: A `tfp.distributions.Categorical` over the policies. Its
            parameter may be a variable.
          policies: Policies without memory that have the same specs.
          name: The module's name.
          emit_log_probability: Whether the info also has `log_probability`, that of the
            action whichever policy would have chosen it. All policies then need a
            distribution.
          seed: See `TFPolicy`.

        Raises:
          TypeError: The distribution is of another kind.
          ValueError: The policies differ, or their number is not that of the
            distribution.
        """
        import tensorflow_probability as tfp

        if not isinstance(mixture_distribution, tfp.distributions.Categorical):
            raise TypeError(
                f"mixture_distribution: got a {type(mixture_distribution).__name__}, "
                "expected a tfp.distributions.Categorical; make one."
            )
        number = mixture_distribution.logits_parameter().shape[-1]
        if number != len(policies):
            raise ValueError(
                f"policies: got {len(policies)}, expected {number}, as many as "
                "mixture_distribution has values; give as many."
            )
        check_equal(policies, ("action_spec", "time_step_spec", "info_spec"))
        self._policies = tuple(policies)
        self._mixture_distribution = mixture_distribution
        first = policies[0]
        super().__init__(
            first.time_step_spec,
            first.action_spec,
            info_spec={
                MIXTURE_AGENT_ID: tensor_spec.BoundedTensorSpec(
                    [], tf.int32, 0, number - 1
                ),
                SUBPOLICY_INFO: first.info_spec,
            },
            clip=False,
            emit_log_probability=emit_log_probability,
            observation_and_action_constraint_splitter=(
                first.observation_and_action_constraint_splitter
            ),
            name=name,
            seed=seed,
        )

    @property
    def accepts_per_arm_features(self) -> bool:
        """Whether the observation has features of the arms."""
        return getattr(self._policies[0], "accepts_per_arm_features", False)

    def _is_pure_tensorflow(self) -> bool:
        return all(policy._is_pure_tensorflow() for policy in self._policies)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        own, *others = seeds.split_seed(seed, 1 + len(self._policies))
        size = tf.shape(time_step.step_type)
        choice = sampling.sample(self._rows_distribution(size), own)
        steps = [
            policy.action(time_step, policy_state, each)
            for policy, each in zip(self._policies, others, strict=True)
        ]

        def chosen(*values: tf.Tensor) -> tf.Tensor:
            return tf.gather(tf.stack(values, axis=1), choice, batch_dims=1)

        action, info = tf.nest.map_structure(
            chosen, *((step.action, step.info) for step in steps)
        )
        info = {MIXTURE_AGENT_ID: choice, SUBPOLICY_INFO: info}
        if self._emit_log_probability:
            mixed = self._distribution(time_step, policy_state).action
            info["log_probability"] = tf.cast(mixed.log_prob(action), tf.float32)
        return policy_step.PolicyStep(action, policy_state, info)

    def _rows_distribution(self, size: tf.Tensor) -> Any:
        """Returns the distribution of each row's policy."""
        import tensorflow_probability as tfp

        logits = tf.convert_to_tensor(self._mixture_distribution.logits_parameter())
        shape = tf.concat([size, logits.shape], axis=0)
        return tfp.distributions.Categorical(
            logits=tf.broadcast_to(logits, shape), dtype=tf.int32
        )

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        import tensorflow_probability as tfp

        shares = self._mixture_distribution.probs_parameter()
        own = [
            policy.distribution(time_step, policy_state).action.probs_parameter()
            for policy in self._policies
        ]
        mixed = tf.einsum("k,kba->ba", tf.cast(shares, tf.float32), tf.stack(own))
        distribution = tfp.distributions.Categorical(
            probs=mixed, dtype=self._action_spec.dtype
        )
        info = tensor_spec.zero_spec_nest(self._info_spec, tf.shape(mixed)[:1])
        return policy_step.PolicyStep(distribution, policy_state, info)


def check_equal(items: Sequence[Any], fields: Sequence[str]) -> None:
    """Raises ValueError unless all policies, or agents, have the same specs."""
    for field in fields:
        first = getattr(items[0], field)
        for i, item in enumerate(items):
            if getattr(item, field) != first:
                raise ValueError(
                    f"{field} of number {i}: got {getattr(item, field)}, expected "
                    f"{first}, that of number 0; all of a mixture need the same."
                )
