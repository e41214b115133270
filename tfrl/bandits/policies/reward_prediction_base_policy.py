"""The base of policies whose network predicts the reward of each arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy
from tfrl.bandits.policies import constraints as constraint_module
from tfrl.policies import utils as policy_utils
from tfrl.policies.utils import BanditPolicyType
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


def number(value: Any) -> tf.Tensor:
    """Returns the float32 number of a number, a variable, or a function."""
    return tf.cast(value() if callable(value) else value, tf.float32)


def numbers_of(num_samples_list: Sequence[tf.Variable]) -> tf.Tensor:
    """Returns the numbers in variables, float32, one after the other."""
    return tf.concat(
        [tf.reshape(tf.cast(each, tf.float32), [-1]) for each in num_samples_list], 0
    )


class RewardPredictionBasePolicy(bandit_policy.BanditPolicy):
    """Draws arms by probabilities that a subclass computes from predicted rewards.

    A subclass writes `_log_probabilities`, and sets `_policy_type`.
    """

    _policy_type = BanditPolicyType.UNKNOWN
    _draws = True

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        reward_network: types.Network | types.Layer,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        accepts_per_arm_features: bool = False,
        constraints: Sequence[constraint_module.BaseConstraint] = (),
        emit_policy_info: Sequence[str] = (),
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          reward_network: A network, or Keras layer or model, with output `[B, A]`, or a
            `QBanditNetworkResult` of such tensors.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          accepts_per_arm_features: See `BanditPolicy`.
          constraints: What arms must fulfil; see `constraints.feasible_arms`.
          emit_policy_info: See `BanditPolicy`.
          name: The module's name.
          **kwargs: Further arguments of `BanditPolicy`.

        Raises:
          ValueError: The network's output has another shape.
        """
        splitter = observation_and_action_constraint_splitter
        self._reward_network, output = network_outputs.built(
            reward_network, time_step_spec, splitter
        )
        output = network_outputs.mean_of(output)
        num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        expected = [None if accepts_per_arm_features else num_actions]
        if not output.shape.is_compatible_with(expected):
            raise ValueError(
                f"reward_network: got output of shape {output.shape}, expected "
                f"({num_actions},), a reward for each arm; change its last layer."
            )
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=splitter,
            name=name,
            **kwargs,
        )
        self._constraints = tuple(constraints)

    @property
    def reward_network(self) -> Any:
        """The network that predicts rewards."""
        return self._reward_network

    def _feasible(
        self, observation: Any, allowed: tf.Tensor, seed: tf.Tensor | None
    ) -> tf.Tensor:
        return constraint_module.feasible_arms(
            observation, self._constraints, allowed, seed
        )

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        rewards = network_outputs.rewards_of(self._reward_network, observation)
        return bandit_policy.Prediction(rewards)
