"""An agent that acts by a given policy and learns nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from typing_extensions import override

from tfrl.agents import tf_agent
from tfrl.policies import tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types

# A policy's class, or any function that makes a policy of the two specs.
PolicyClassType = Callable[..., tf_policy.TFPolicy]


class FixedPolicyAgent(tf_agent.TFAgent):
    """Acts with one policy; `train` only counts, and the loss is 0."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy_class: PolicyClassType,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        num_outer_dims: int = 1,
        name: str | None = None,
    ) -> None:
        """Makes the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          policy_class: Makes the policy: it is called with the arguments
            `time_step_spec` and `action_spec`.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          num_outer_dims: See `TFAgent`.
          name: The module's name.

        Raises:
          TypeError: `time_step_spec` is not a `TimeStep`.
          ValueError: `num_outer_dims` is neither 1 nor 2.
        """
        policy = policy_class(time_step_spec=time_step_spec, action_spec=action_spec)
        super().__init__(
            time_step_spec,
            action_spec,
            policy,
            policy,
            train_sequence_length=None,
            num_outer_dims=num_outer_dims,
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            name=name,
        )

    def _variables(self) -> list[tf.Variable]:
        return []

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        self._count()
        return self._loss(experience, weights)

    @override
    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        return tf_agent.LossInfo(tf.zeros([]), extra=())
