"""The base class of the policies of bandits, which predict the rewards of arms."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.distributions import sampling
from tfrl.policies import tf_policy
from tfrl.policies import utils as policy_utils
from tfrl.policies.utils import BanditPolicyType, InfoFields
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds

_REWARD_FIELDS = (
    InfoFields.PREDICTED_REWARDS_MEAN,
    InfoFields.MULTIOBJECTIVE_SCALARIZED_PREDICTED_REWARDS_MEAN,
    InfoFields.PREDICTED_REWARDS_OPTIMISTIC,
    InfoFields.PREDICTED_REWARDS_SAMPLED,
)


class Prediction(NamedTuple):
    """What a policy predicts of the rewards of all arms, each `[B, A]`.

    Attributes:
      mean: The expected rewards.
      deviation: The standard deviations of a model's uncertainty; None without one.
      parts: What each of several networks predicts, `[B, K, A]`; None for one network.
    """

    mean: tf.Tensor
    deviation: tf.Tensor | None = None
    parts: tf.Tensor | None = None


class Choice(NamedTuple):
    """The arms that a policy chose.

    Attributes:
      action: The arms, int32 `[B]`, -1 in a row without an allowed one.
      policy_type: How each was chosen, a `BanditPolicyType`, int32 `[B]`.
      scores: The numbers whose largest was chosen, `[B, A]`, or None.
    """

    action: tf.Tensor
    policy_type: tf.Tensor
    scores: tf.Tensor | None = None


class BanditPolicy(tf_policy.TFPolicy):
    """Chooses among the allowed arms by their predicted rewards.

    An arm is allowed if the mask allows it and it is one of the first `num_actions`,
    where the observation has these. In a row without an allowed arm the action is -1. A
    row's action depends on the row, the seed and the size of the batch alone.

    A subclass predicts rewards in `_predict`, chooses in `_choose`, and gives the
    probabilities of its choices in `_log_probabilities`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        *,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        accepts_per_arm_features: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        scores_field: str = "",
        num_objectives: int | None = None,
        dtype: tf.DType = tf.float32,
        name: str | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          emit_policy_info: The fields of `PolicyInfo` to fill in, of `InfoFields`.
            Fields that the policy does not have stay empty.
          emit_log_probability: Whether the info has the logarithm of the probability of
            the action, as if `emit_policy_info` had this field.
          accepts_per_arm_features: Whether the observation has features of the arms;
            the info then has the features of the chosen one.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          scores_field: The field of the scores of a `Choice`, if the policy has them.
          num_objectives: The number of objectives, if the predicted rewards in the info
            are those of several ones, `[B, objectives, A]`; None for `[B, A]`.
          dtype: The dtype of the predictions in the info.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The action is of another kind.
        """
        self._num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        self._accepts_per_arm_features = accepts_per_arm_features
        self._scores_field = scores_field
        self._has_objectives = num_objectives is not None
        emit_log_probability |= InfoFields.LOG_PROBABILITY in emit_policy_info
        own = (InfoFields.PREDICTED_REWARDS_MEAN, scores_field)
        fields: dict[str, Any] = {
            field: tf.TensorSpec([self._num_actions], dtype)
            for field in _REWARD_FIELDS
            if field in emit_policy_info and field in own
        }
        if self._has_objectives and InfoFields.PREDICTED_REWARDS_MEAN in fields:
            fields[InfoFields.PREDICTED_REWARDS_MEAN] = tf.TensorSpec(
                [num_objectives, self._num_actions], dtype
            )
        if InfoFields.BANDIT_POLICY_TYPE in emit_policy_info:
            fields[InfoFields.BANDIT_POLICY_TYPE] = (
                policy_utils.create_bandit_policy_type_tensor_spec([1])
            )
        kind: Any = policy_utils.PolicyInfo
        if accepts_per_arm_features:
            kind = policy_utils.PerArmPolicyInfo
            splitter = observation_and_action_constraint_splitter
            context = policy_utils.network_observation_spec(
                time_step_spec.observation, splitter
            )
            fields[InfoFields.CHOSEN_ARM_FEATURES] = tf.nest.map_structure(
                lambda spec: tf.TensorSpec(spec.shape[1:], spec.dtype),
                context[bandit_spec_utils.PER_ARM_FEATURE_KEY],
            )
        self._fields = tuple(fields)
        self._info_dtype = dtype
        super().__init__(
            time_step_spec,
            action_spec,
            info_spec=kind(**fields),
            clip=False,
            emit_log_probability=emit_log_probability,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            name=name,
            seed=seed,
        )

    @property
    def accepts_per_arm_features(self) -> bool:
        """Whether the observation has features of the arms."""
        return self._accepts_per_arm_features

    @abc.abstractmethod
    def _predict(self, observation: Any) -> Prediction:
        """Returns the predicted rewards for observations without masks."""

    def _predict_by(self, observation: Any, seed: tf.Tensor) -> Prediction:
        """Returns the predicted rewards of `action`, which may draw a model."""
        del seed
        return self._predict(observation)

    def _feasible(
        self, observation: Any, allowed: tf.Tensor, seed: tf.Tensor | None
    ) -> tf.Tensor:
        """Returns which of the allowed arms constraints allow, too, bool `[B, A]`.

        Args:
          observation: The observations, without masks.
          allowed: The allowed arms, bool `[B, A]`.
          seed: A stateless seed for random constraints, or None.
        """
        del observation, seed
        return allowed

    @abc.abstractmethod
    def _choose(
        self, predicted: Prediction, allowed: tf.Tensor, seed: tf.Tensor
    ) -> Choice:
        """Returns the chosen arms.

        Args:
          predicted: The predicted rewards.
          allowed: The allowed arms, bool `[B, A]`.
          seed: A stateless seed.
        """

    @abc.abstractmethod
    def _log_probabilities(
        self, predicted: Prediction, allowed: tf.Tensor
    ) -> tf.Tensor:
        """Returns the logarithms of the probabilities of all arms, `[B, A]`.

        Args:
          predicted: The predicted rewards.
          allowed: The allowed arms, bool `[B, A]`.
        """

    def _is_pure_tensorflow(self) -> bool:
        is_ours = type(self).__module__.startswith("tfrl.")
        return is_ours and self._observation_and_action_constraint_splitter is None

    def _split(self, observation: Any) -> tuple[Any, tf.Tensor]:
        """Returns the observation without a mask, and the allowed arms."""
        splitter, mask = self._observation_and_action_constraint_splitter, None
        if splitter is not None:
            observation, mask = splitter(observation)
        return observation, allowed_arms(observation, mask, self._num_actions)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        if time_step.step_type.shape.rank == 0:
            raise ValueError(
                "time_step: got one without a batch, expected tensors [B, ...]; use "
                "ts.restart(observation, batch_size=1) and the like."
            )
        observation, allowed = self._split(time_step.observation)
        allowed = self._feasible(observation, allowed, seed)
        predicted = self._predict_by(observation, seed)
        choice = self._choose(predicted, allowed, seed)
        index = tf.maximum(choice.action, 0)
        found = {
            InfoFields.PREDICTED_REWARDS_MEAN: predicted.parts
            if self._has_objectives
            else predicted.mean,
            InfoFields.BANDIT_POLICY_TYPE: choice.policy_type[:, tf.newaxis],
            self._scores_field: choice.scores,
        }
        if self._accepts_per_arm_features:
            found[InfoFields.CHOSEN_ARM_FEATURES] = tf.nest.map_structure(
                lambda arms: tf.gather(arms, index, batch_dims=1),
                observation[bandit_spec_utils.PER_ARM_FEATURE_KEY],
            )
        for field in _REWARD_FIELDS:
            if field in self._fields:
                found[field] = tf.cast(found[field], self._info_dtype)
        if self._emit_log_probability:
            logs = tf.cast(self._log_probabilities(predicted, allowed), tf.float32)
            found["log_probability"] = tf.gather(logs, index, batch_dims=1)
        info = self._info_spec._replace(
            **{
                field: found[field]
                for field in (*self._fields, "log_probability")
                if field in found
            }
        )
        action = tf.cast(choice.action, self._action_spec.dtype)
        return policy_step.PolicyStep(action, policy_state, info)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        import tensorflow_probability as tfp

        observation, allowed = self._split(time_step.observation)
        allowed = self._feasible(observation, allowed, None)
        logits = self._log_probabilities(self._predict(observation), allowed)
        distribution = tfp.distributions.Categorical(
            logits=tf.cast(logits, tf.float32), dtype=self._action_spec.dtype
        )
        size = tf.shape(allowed)[:1]
        info = tf.nest.map_structure(
            lambda spec: tf.zeros(tf.concat([size, spec.shape], 0), spec.dtype),
            self._info_spec,
        )
        return policy_step.PolicyStep(distribution, policy_state, info)


def variables_in(*values: Any) -> list[tf.Variable]:
    """Returns the variables in nests of values."""
    return [v for v in tf.nest.flatten(values) if isinstance(v, tf.Variable)]


def allowed_arms(
    observation: Any, mask: tf.Tensor | None, num_actions: int
) -> tf.Tensor:
    """Returns the arms that the mask and the number of arms allow, bool `[B, A]`.

    Args:
      observation: The observations, without masks.
      mask: `[B, A]`, where 0 forbids an arm; None forbids none.
      num_actions: The number of arms, `A`.
    """
    first = tf.nest.flatten(observation)[0]
    allowed = tf.ones([tf.shape(first)[0], num_actions], tf.bool)
    if first.shape.rank is not None:
        allowed = tf.ensure_shape(allowed, [first.shape[0], num_actions])
    if mask is not None:
        allowed &= tf.cast(mask, tf.bool)
    key = bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY
    if isinstance(observation, dict) and key in observation:
        number = tf.reshape(observation[key], [-1])
        allowed &= tf.sequence_mask(number, num_actions)
    return allowed


def greedy(scores: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns the allowed arm with the largest score of each row, int32 `[B]`."""
    return policy_utils.masked_argmax(scores, allowed, tf.int32)


def greedy_log_probabilities(scores: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns 0 for the arm of `greedy`, and the least number for the others."""
    is_best = tf.one_hot(
        greedy(scores, allowed), scores.shape[1], on_value=True, off_value=False
    )
    return policy_utils.mask_values(tf.zeros(tf.shape(scores)), is_best)


def sometimes_uniform(
    choice: Choice, allowed: tf.Tensor, epsilon: tf.Tensor, seed: tf.Tensor
) -> Choice:
    """Replaces choices by uniform allowed arms with probability epsilon.

    Args:
      choice: The choices.
      allowed: The allowed arms, bool `[B, A]`.
      epsilon: Float32.
      seed: A stateless seed.
    """
    for_coin, for_arm = seeds.split_seed(seed, 2)
    coin = seeds.uniform(for_coin, tf.shape(choice.action))
    is_uniform = (coin < epsilon) & (choice.action >= 0)
    arm = policy_utils.random_valid_index(allowed, for_arm)
    return choice._replace(
        action=tf.where(is_uniform, arm, choice.action),
        policy_type=tf.where(is_uniform, BanditPolicyType.UNIFORM, choice.policy_type),
    )


def sometimes_uniform_log_probabilities(
    log_probabilities: tf.Tensor, allowed: tf.Tensor, epsilon: tf.Tensor
) -> tf.Tensor:
    """Returns the log probabilities `[B, A]` of what `sometimes_uniform` chooses.

    Args:
      log_probabilities: Those of the choices before, `[B, A]`.
      allowed: The allowed arms, bool `[B, A]`.
      epsilon: Float32.
    """
    one = tf.cast(allowed, tf.float32)
    share = tf.math.divide_no_nan(one, tf.reduce_sum(one, axis=1, keepdims=True))
    return log_of(epsilon * share + (1 - epsilon) * tf.exp(log_probabilities))


def log_of(probability: tf.Tensor) -> tf.Tensor:
    """Returns the logarithms of probabilities, the least number for those of 0."""
    logs = tf.math.log(tf.maximum(probability, 1e-37))
    return tf.where(probability > 0, logs, tf.float32.min)


def log_softmax(logits: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns the logarithms of the softmax over the allowed arms, `[B, A]`."""
    least = logits.dtype.min
    logs = tf.nn.log_softmax(tf.where(allowed, logits, least))
    return tf.where(allowed, logs, least)


def drawn(
    log_probabilities: tf.Tensor, allowed: tf.Tensor, seed: tf.Tensor
) -> tf.Tensor:
    """Draws an arm of each row by its probability, int32 `[B]`; -1 if none is allowed.

    Args:
      log_probabilities: `[B, A]`.
      allowed: The allowed arms, bool `[B, A]`.
      seed: A stateless seed.
    """
    import tensorflow_probability as tfp

    logits = policy_utils.mask_values(log_probabilities, allowed)
    distribution = tfp.distributions.Categorical(logits=logits, dtype=tf.int32)
    action = sampling.sample(distribution, seed)
    return tf.where(tf.reduce_any(allowed, axis=1), action, -1)


def of_type(action: tf.Tensor, policy_type: int) -> tf.Tensor:
    """Returns the `BanditPolicyType` of actions that were all chosen in one way."""
    return tf.fill(tf.shape(action), policy_type)
