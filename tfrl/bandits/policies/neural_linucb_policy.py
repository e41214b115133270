"""LinUCB on the outputs of a network, after a reward layer has trained it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy, linear_models
from tfrl.compilation import replicas
from tfrl.networks import network
from tfrl.policies import utils as policy_utils
from tfrl.policies.utils import InfoFields
from tfrl.specs import bandit_spec_utils, tensor_spec
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
        num_actions: int,
        encoding_dim: int,
        dtype: tf.DType = tf.float64,
        name: str | None = None,
    ) -> None:
        """Creates the variables of models without rows.

        Args:
          num_actions: The number of models: of arms, or 1 if arms have features.
          encoding_dim: The number of outputs of the encoding network.
          dtype: The dtype of the lists.
          name: The module's name.
        """
        super().__init__(encoding_dim, num_actions, dtype=dtype, name=name)
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

    _scores_field = InfoFields.PREDICTED_REWARDS_OPTIMISTIC

    def __init__(
        self,
        encoding_network: types.Network | types.Layer,
        encoding_dim: int,
        reward_layer: types.Network | types.Layer,
        epsilon_greedy: float,
        actions_from_reward_layer: Any,
        cov_matrix: Any,
        data_vector: Any,
        num_samples: Any,
        time_step_spec: ts.TimeStep,
        alpha: Any = 1.0,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        accepts_per_arm_features: bool = False,
        distributed_use_reward_layer: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        name: str | None = None,
        *,
        action_spec: tensor_spec.BoundedTensorSpec | None = None,
        theta: Any = None,
        inverse: Any = None,
        tikhonov_weight: float = 1.0,
        seed: int | None = None,
    ) -> None:
        """Creates the policy; see `LinearBanditPolicy` for the other arguments.

        Args:
          encoding_network: Maps observations to `[B, d]`, or to `[B, A, d]` if arms
            have features.
          encoding_dim: d.
          reward_layer: Maps encodings `[B, d]` to a reward for each model, `[B, M]`.
          epsilon_greedy: The probability of a uniform arm in the first phase.
          actions_from_reward_layer: Whether the reward layer chooses arms: a boolean,
            a tensor or a variable.
          cov_matrix: See `LinearBanditPolicy`.
          data_vector: See `LinearBanditPolicy`.
          num_samples: See `LinearBanditPolicy`.
          time_step_spec: A `TimeStep` of specs.
          alpha: The factor of the standard deviations: a number or a variable.
          emit_policy_info: See `BanditPolicy`.
          emit_log_probability: See `BanditPolicy`.
          accepts_per_arm_features: See `BanditPolicy`.
          distributed_use_reward_layer: What takes the place of
            `actions_from_reward_layer` in a replica of several.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          name: The module's name.
          action_spec: One bounded integer spec of shape `[]`, from 0; None for int32.
          theta: See `LinearBanditPolicy`.
          inverse: See `LinearBanditPolicy`.
          tikhonov_weight: See `LinearBanditPolicy`.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The network's output, or the number or the size of the models,
            does not fit the specs.
        """
        splitter = observation_and_action_constraint_splitter
        self._encoding_network, encoded = network_outputs.built(
            encoding_network, time_step_spec, splitter
        )
        if encoded.shape[-1] != encoding_dim:
            raise ValueError(
                f"encoding_network: got output of shape {encoded.shape}, expected "
                f"encoding_dim={encoding_dim} numbers; change one of them."
            )
        self._reward_layer = network.as_network(reward_layer)
        num_models = self._reward_layer.create_variables(
            tf.TensorSpec([encoding_dim], tf.float32)
        ).shape[-1]
        if action_spec is None:
            num_actions = num_models
            if accepts_per_arm_features:
                # The output's specs have one arm, whatever the number of arms.
                spec = policy_utils.network_observation_spec(
                    time_step_spec.observation, splitter
                )[bandit_spec_utils.PER_ARM_FEATURE_KEY]
                num_actions = tf.nest.flatten(spec)[0].shape[0]
            action_spec = tensor_spec.BoundedTensorSpec(
                [], tf.int32, 0, num_actions - 1
            )
        self._models = linear_models.LinearModels(
            (encoding_dim, num_models),
            cov_matrix,
            data_vector,
            num_samples,
            theta,
            inverse,
            tikhonov_weight,
        )
        self._actions_from_reward_layer = actions_from_reward_layer
        self._distributed_use_reward_layer = distributed_use_reward_layer
        self._epsilon = epsilon_greedy
        self._alpha = alpha
        super().__init__(
            time_step_spec,
            action_spec,
            emit_policy_info=emit_policy_info,
            emit_log_probability=emit_log_probability,
            accepts_per_arm_features=accepts_per_arm_features,
            observation_and_action_constraint_splitter=splitter,
            name=name,
            seed=seed,
        )

    def _predict(self, observation: Any) -> bandit_policy.Prediction:
        observation = network_outputs.network_input(observation)
        encoded, _ = self._encoding_network(observation)
        first, _ = self._reward_layer(encoded)
        if self._accepts_per_arm_features:
            first = first[..., 0]
        encoded = tf.cast(encoded, tf.float64)
        mean, deviation = self._models.predict(encoded, self._alpha)
        is_first = self._is_first_phase()
        return bandit_policy.Prediction(
            tf.where(is_first, tf.cast(first, tf.float64), mean),
            tf.where(is_first, tf.zeros_like(deviation), deviation),
        )

    def _uniform_share(self) -> tf.Tensor:
        epsilon = tf.cast(self._epsilon, tf.float32)
        return tf.where(self._is_first_phase(), epsilon, 0.0)

    def _is_first_phase(self) -> tf.Tensor:
        if replicas.are_several():
            return tf.constant(self._distributed_use_reward_layer)
        return tf.convert_to_tensor(self._actions_from_reward_layer)
