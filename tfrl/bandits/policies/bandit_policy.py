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


class Prediction(NamedTuple):
    """What a policy knows of the arms of all rows, each `[B, A]`.

    Attributes:
      mean: The expected rewards.
      deviation: The standard deviations of a model's uncertainty; None without one.
      parts: What each of several networks predicts, `[B, K, A]`; None for one network.
      allowed: Which arms may be chosen, bool; `BanditPolicy` sets it.
    """

    mean: tf.Tensor
    deviation: Any = None
    parts: Any = None
    allowed: Any = None

    def upper_bound(self) -> tf.Tensor:
        """Returns the mean plus the deviation, or the mean without one."""
        return self.mean if self.deviation is None else self.mean + self.deviation


class BanditPolicy(tf_policy.TFPolicy):
    """Chooses among the allowed arms by their predicted rewards.

    An arm is allowed if the mask allows it and it is one of the first `num_actions`,
    where the observation has these. In a row without an allowed arm the action is -1. A
    row's action depends on the row, the seed and the size of the batch alone.

    A `GreedyPolicy` takes the most probable arm, with the info about it; where scores
    have noise, the arm with the largest mean, since each probability is an integral.

    A subclass predicts rewards in `_predict`. The allowed arm with the largest of its
    `_scores` is chosen, or with `_draws` one that is drawn; `_log_probabilities` are
    those of the choice in both cases. Unless overridden, both are greedy.
    """

    # The field of the info that has the scores; "" for none.
    _scores_field = ""
    # The number of the predicted rewards' parts, if the info has these and not the
    # mean, `[B, parts, A]`.
    _num_parts: int | None = None
    # How arms are chosen that are not uniform.
    _policy_type = BanditPolicyType.GREEDY
    # Whether arms are drawn by `_log_probabilities`.
    _draws = False
    # Whether `_scores` adds noise to the mean.
    _adds_noise = False
    _greedy_action_needs_clip = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        *,
        emit_policy_info: Sequence[str] = (),
        emit_log_probability: bool = False,
        accepts_per_arm_features: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
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
          dtype: The dtype of the predictions in the info.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The action is of another kind.
        """
        self._num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        self._accepts_per_arm_features = accepts_per_arm_features
        emit_log_probability |= InfoFields.LOG_PROBABILITY in emit_policy_info
        rewards = [self._num_actions]
        means = rewards if self._num_parts is None else [self._num_parts, *rewards]
        specs: dict[str, Any] = {
            InfoFields.PREDICTED_REWARDS_MEAN: tf.TensorSpec(means, dtype),
            self._scores_field: tf.TensorSpec(rewards, dtype),
            InfoFields.BANDIT_POLICY_TYPE: (
                policy_utils.create_bandit_policy_type_tensor_spec([1])
            ),
        }
        fields = {name: specs[name] for name in specs if name in emit_policy_info}
        self._fields = tuple(fields)
        kind: Any = policy_utils.PolicyInfo
        splitter = observation_and_action_constraint_splitter
        if accepts_per_arm_features:
            kind = policy_utils.PerArmPolicyInfo
            context = policy_utils.network_observation_spec(
                time_step_spec.observation, splitter
            )
            fields[InfoFields.CHOSEN_ARM_FEATURES] = tf.nest.map_structure(
                lambda spec: tf.TensorSpec(spec.shape[1:], spec.dtype),
                context[bandit_spec_utils.PER_ARM_FEATURE_KEY],
            )
        self._info_dtype = dtype
        super().__init__(
            time_step_spec,
            action_spec,
            info_spec=kind(**fields),
            clip=False,
            emit_log_probability=emit_log_probability,
            observation_and_action_constraint_splitter=splitter,
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

    def _scores(self, predicted: Prediction, seed: tf.Tensor) -> tf.Tensor:
        """Returns the numbers whose largest is chosen, `[B, A]`."""
        del seed
        return predicted.upper_bound()

    def _log_probabilities(self, predicted: Prediction) -> tf.Tensor:
        """Returns the logarithms of the arms' probabilities to be chosen, `[B, A]`."""
        return greedy_log_probabilities(predicted.upper_bound(), predicted.allowed)

    def _uniform_share(self) -> tf.Tensor | None:
        """Returns the probability that a uniform arm replaces the choice, or None."""
        return None

    def _is_pure_tensorflow(self) -> bool:
        is_ours = type(self).__module__.startswith("tfrl.")
        return is_ours and self._observation_and_action_constraint_splitter is None

    def _known(
        self, observation: Any, seed: tf.Tensor | None
    ) -> tuple[Any, Prediction]:
        """Returns the observation without a mask, and what is predicted.

        Args:
          observation: The observations.
          seed: A stateless seed; None if nothing is drawn.
        """
        splitter, mask = self._observation_and_action_constraint_splitter, None
        if splitter is not None:
            observation, mask = splitter(observation)
        allowed = allowed_arms(observation, mask, self._num_actions)
        allowed = self._feasible(observation, allowed, seed)
        if seed is None:
            predicted = self._predict(observation)
        else:
            predicted = self._predict_by(observation, seed)
        return observation, predicted._replace(allowed=allowed)

    def _choose(
        self, predicted: Prediction, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the arms and how they were chosen, int32 `[B]`, and the scores."""
        allowed, scores = predicted.allowed, predicted.mean
        if self._draws:
            action = drawn(self._log_probabilities(predicted), allowed, seed)
        else:
            scores = self._scores(predicted, seed)
            action = policy_utils.masked_argmax(scores, allowed)
        kind = tf.fill(tf.shape(action), self._policy_type)
        epsilon = self._uniform_share()
        if epsilon is not None:
            action, is_uniform = sometimes_uniform(action, allowed, epsilon, seed)
            kind = tf.where(is_uniform, BanditPolicyType.UNIFORM, kind)
        return action, kind, scores

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
        observation, predicted = self._known(time_step.observation, seed)
        action, kind, scores = self._choose(predicted, seed)
        step = self._step(observation, predicted, action, kind, scores, policy_state)
        if not self._emit_log_probability:
            return step
        logs = self._all_log_probabilities(predicted)
        log = tf.gather(logs, tf.maximum(action, 0), batch_dims=1)
        return step._replace(info=policy_step.set_log_probability(step.info, log))

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        observation, predicted = self._known(time_step.observation, None)
        if self._adds_noise:
            rank = predicted.mean
        else:
            rank = self._all_log_probabilities(predicted)
        action = policy_utils.masked_argmax(rank, predicted.allowed)
        kind = tf.fill(tf.shape(action), BanditPolicyType.GREEDY)
        draws = self._scores_field == InfoFields.PREDICTED_REWARDS_SAMPLED
        scores = predicted.mean if draws else predicted.upper_bound()
        return self._step(observation, predicted, action, kind, scores, policy_state)

    def _step(
        self,
        observation: Any,
        predicted: Prediction,
        action: tf.Tensor,
        kind: tf.Tensor,
        scores: tf.Tensor,
        policy_state: types.NestedTensor,
    ) -> policy_step.PolicyStep:
        """Returns arms with the info about them, as if certain; see `_choose`."""
        index = tf.maximum(action, 0)
        mean = predicted.mean if self._num_parts is None else predicted.parts
        known = {
            InfoFields.PREDICTED_REWARDS_MEAN: tf.cast(mean, self._info_dtype),
            self._scores_field: tf.cast(scores, self._info_dtype),
            InfoFields.BANDIT_POLICY_TYPE: kind[:, tf.newaxis],
        }
        found = {name: known[name] for name in self._fields}
        if self._accepts_per_arm_features:
            found[InfoFields.CHOSEN_ARM_FEATURES] = tf.nest.map_structure(
                lambda arms: tf.gather(arms, index, batch_dims=1),
                observation[bandit_spec_utils.PER_ARM_FEATURE_KEY],
            )
        if self._emit_log_probability:
            # Of a certain arm; `_action` replaces it.
            found[InfoFields.LOG_PROBABILITY] = tf.zeros(tf.shape(action))
        info = self._info_spec._replace(**found)
        action = tf.cast(action, self._action_spec.dtype)
        return policy_step.PolicyStep(action, policy_state, info)

    def _all_log_probabilities(self, predicted: Prediction) -> tf.Tensor:
        """Returns `_log_probabilities` with uniform arms, float32 `[B, A]`."""
        logs, epsilon = self._log_probabilities(predicted), self._uniform_share()
        if epsilon is not None:
            logs = sometimes_uniform_log_probabilities(logs, predicted.allowed, epsilon)
        return tf.cast(logs, tf.float32)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        import tensorflow_probability as tfp

        _, predicted = self._known(time_step.observation, None)
        distribution = tfp.distributions.Categorical(
            logits=self._all_log_probabilities(predicted), dtype=self._action_spec.dtype
        )
        info = tensor_spec.zero_spec_nest(
            self._info_spec, tf.shape(predicted.allowed)[:1]
        )
        return policy_step.PolicyStep(distribution, policy_state, info)


def in_each_row(values: tf.Tensor, observation: Any) -> tf.Tensor:
    """Returns the numbers of arms `[A]` for each row of observations, `[B, A]`."""
    first = tf.nest.flatten(observation)[0]
    shape = tf.concat([tf.shape(first)[:1], values.shape], axis=0)
    static = first.shape[:1].concatenate(values.shape)
    return tf.ensure_shape(tf.broadcast_to(values, shape), static)


def allowed_arms(
    observation: Any, mask: tf.Tensor | None, num_actions: int
) -> tf.Tensor:
    """Returns the arms that the mask and the number of arms allow, bool `[B, A]`.

    Args:
      observation: The observations, without masks.
      mask: `[B, A]`, where 0 forbids an arm; None forbids none.
      num_actions: The number of arms, `A`.
    """
    allowed = in_each_row(tf.ones([num_actions], tf.bool), observation)
    if mask is not None:
        allowed &= tf.cast(mask, tf.bool)
    key = bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY
    if isinstance(observation, dict) and key in observation:
        number = tf.reshape(observation[key], [-1])
        allowed &= tf.sequence_mask(number, num_actions)
    return allowed


def greedy_log_probabilities(scores: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Returns 0 for the allowed arm with the largest score, else the least number."""
    best = policy_utils.masked_argmax(scores, allowed)
    is_best = tf.one_hot(best, scores.shape[1], on_value=True, off_value=False)
    return policy_utils.mask_values(tf.zeros(tf.shape(scores)), is_best)


def sometimes_uniform(
    action: tf.Tensor, allowed: tf.Tensor, epsilon: tf.Tensor, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Replaces arms by uniform allowed ones with probability epsilon.

    Args:
      action: The arms, int32 `[B]`; -1 stays.
      allowed: The allowed arms, bool `[B, A]`.
      epsilon: Float32.
      seed: A stateless seed.

    Returns:
      The arms, and which of them were replaced, bool `[B]`.
    """
    for_coin, for_arm = seeds.split_seed(seed, 2)
    coin = seeds.uniform(for_coin, tf.shape(action))
    is_uniform = (coin < epsilon) & (action >= 0)
    arm = policy_utils.random_valid_index(allowed, for_arm)
    return tf.where(is_uniform, arm, action), is_uniform


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
    logs = tf.nn.log_softmax(policy_utils.mask_values(logits, allowed))
    return policy_utils.mask_values(logs, allowed)


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
