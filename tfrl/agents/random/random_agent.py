"""An agent that acts at random and learns nothing."""

from __future__ import annotations

import functools

import tensorflow as tf

from tfrl.agents.random import fixed_policy_agent
from tfrl.policies import random_tf_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class RandomAgent(fixed_policy_agent.FixedPolicyAgent):
    """Draws actions uniformly; `train` only counts, and the loss is 0."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        debug_summaries: bool = False,
        summarize_grads_and_vars: bool = False,
        train_step_counter: tf.Variable | None = None,
        num_outer_dims: int = 1,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the random policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          debug_summaries: See `TFAgent`.
          summarize_grads_and_vars: See `TFAgent`.
          train_step_counter: See `TFAgent`.
          num_outer_dims: See `TFAgent`.
          name: The module's name.
          seed: The seed of the actions; None follows `tf.random.set_seed`.

        Raises:
          TypeError: `time_step_spec` is not a `TimeStep`.
          ValueError: `num_outer_dims` is neither 1 nor 2.
        """
        super().__init__(
            time_step_spec,
            action_spec,
            functools.partial(random_tf_policy.RandomTFPolicy, seed=seed),
            debug_summaries=debug_summaries,
            summarize_grads_and_vars=summarize_grads_and_vars,
            train_step_counter=train_step_counter,
            num_outer_dims=num_outer_dims,
            name=name,
        )
