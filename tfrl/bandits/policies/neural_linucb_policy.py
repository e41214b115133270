"""LinUCB on the outputs of a network, after a reward layer has trained it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy, linear_models
from tfrl.networks import network
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class NeuralLinUCBVariableCollection(linear_models.LinearBanditVariableCollection):
    """The variables of linear models of encodings, and which phase it is.

    Attributes:
      actions_from_reward_layer: Whether the reward layer chooses arms, and not the
        linear models yet.
    """

    def __init__(
        self,
        num_models: int,
        encoding_dim: int,
        dtype: tf.DType = tf.float64,
        name: str | None = None,
    ) -> None:
        """Creates the variables of models without rows.

        Args:
          num_models: The number of models: of arms, or 1 if arms have features.
          encoding_dim: The number of outputs of the encoding network.
          dtype: The dtype of the lists.
          name: The module's name.
        """
        super().__init__(encoding_dim, num_models, dtype=dtype, name=name)
        self.actions_from_reward_layer = tf.Variable(
            True, trainable=False, name="actions_from_reward_layer"
        )


class NeuralLinUCBPolicy(bandit_policy.BanditPolicy):
    """Chooses by a reward layer at first, and later by LinUCB, on a network's outputs.

    The reward layer's choice is the largest predicted reward, and with the probability
    `epsilon_greedy` a uniform allowed arm. LinUCB is that of `LinearBanditPolicy`, with
    the outputs of the network as features (Riquelme et al., "Deep Bayesian bandits
    showdown", 2018, arXiv:1802.09127, section 4, neural linear).
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        encoding_network: network.Network,
        reward_layer: network.Network,
        variable_collection: NeuralLinUCBVariableCollection,
        epsilon_greedy: float = 0.0,
        alpha: Any = 1.0,
        *,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        accepts_per_arm_features: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        name: str | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy; see `BanditPolicy` for the other arguments.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          encoding_network: Maps observations to `[B, d]`, or to `[B, A, d]` if arms
            have features.
          reward_layer: Maps encodings `[B, d]` to a reward for each model, `[B, M]`.
          variable_collection: The models and the phase; the agent changes them.
          epsilon_greedy: The probability of a uniform arm in the first phase.
          alpha: The factor of the standard deviations: a number or a variable.
          emit_policy_info: See `BanditPolicy`.
          emit_log_probability: See `BanditPolicy`.
          accepts_per_arm_features: See `BanditPolicy`.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          name: The module's name.
          seed: See `TFPolicy`.
        """
        self._encoding_network = encoding_network
        self._reward_layer = reward_layer
        self._models = variable_collection
        self._epsilon = epsilon_greedy
        self._alpha = alpha
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            scores_field=InfoFields.PREDICTED_REWARDS_OPTIMISTIC,
            name=name,
            seed=seed,
        )

    def _variables(self) -> Sequence[Any]:
        models = self._models
        return [
            *self._encoding_network.variables,
            *self._reward_layer.variables,
            models.theta,
            models.inverse,
            models.actions_from_reward_layer,
            *([self._alpha] if isinstance(self._alpha, tf.Variable) else []),
        ]

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        observation = network_outputs.network_input(observation)
        encoded, _ = self._encoding_network(observation)
        first, _ = self._reward_layer(encoded)
        if self._accepts_per_arm_features:
            first = first[..., 0]
        mean, deviation = linear_models.predictions(
            tf.cast(encoded, tf.float64), self._models
        )
        deviation *= tf.cast(self._alpha, tf.float64)
        is_first = self._models.actions_from_reward_layer.read_value()
        return bandit_policy.Prediction(
            tf.where(is_first, tf.cast(first, tf.float64), mean),
            tf.where(is_first, tf.zeros_like(deviation), deviation),
        )

    def _choose(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> bandit_policy.Choice:
        scores = _scores(predicted)
        action = bandit_policy.greedy(scores, allowed)
        kind = bandit_policy.of_type(action, BanditPolicyType.GREEDY)
        choice = bandit_policy.Choice(action, kind, scores)
        return bandit_policy.sometimes_uniform(
            choice, allowed, self._present_epsilon(), seed
        )

    def _log_probabilities(
        self, predicted: bandit_policy.Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        best = bandit_policy.greedy_log_probabilities(_scores(predicted), allowed)
        return bandit_policy.sometimes_uniform_log_probabilities(
            best, allowed, self._present_epsilon()
        )

    def _present_epsilon(self) -> tf.Tensor:
        is_first = self._models.actions_from_reward_layer.read_value()
        return tf.where(is_first, tf.cast(self._epsilon, tf.float32), 0.0)


def _scores(predicted: bandit_policy.Prediction) -> tf.Tensor:
    assert predicted.deviation is not None
    return predicted.mean + predicted.deviation
