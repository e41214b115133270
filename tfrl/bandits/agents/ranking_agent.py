"""Learns the scores of items from clicks on ranked ones."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.agents import bandit_agent
from tfrl.bandits.environments import ranking_environment
from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import loss_utils, ranking_policy
from tfrl.policies.acting import validation
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common

CHOSEN_INDEX = ranking_environment.CHOSEN_INDEX
CHOSEN_VALUE = ranking_environment.CHOSEN_VALUE
FeedbackModel = ranking_environment.FeedbackModel


class RankingPolicyType(enum.Enum):
    """How items are ranked; UNKNOWN is COSINE_DISTANCE."""

    UNKNOWN = 0
    COSINE_DISTANCE = 1
    NO_PENALTY = 2
    DESCENDING_SCORES = 3


class PositionalBiasType(enum.Enum):
    """The weight of slot k, from 0: `(k + 1)^s`, `s^k`, or a given number."""

    UNSET = 0
    BASE = 1
    EXPONENT = 2
    FIXED_BIAS_WEIGHTS = 3


class RankingAgent(bandit_agent.BanditAgent):
    """Trains a network by regression of the scores of the items in the slots.

    Training data have the features of the items in the slots, in their order, which
    `preprocess_sequence` takes from collected frames. With cascading feedback, the
    items before the click have `non_click_score`, and those after it do not count.
    The loss is the weighted mean over all slots that count.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        scoring_network: types.Network,
        optimizer: types.Optimizer | None,
        policy_type: RankingPolicyType = RankingPolicyType.COSINE_DISTANCE,
        error_loss_fn: types.LossFn = common.element_wise_squared_loss,
        feedback_model: FeedbackModel = FeedbackModel.CASCADING,
        non_click_score: float | None = None,
        positional_bias_type: PositionalBiasType | str | None = None,
        positional_bias_severity: float | None = None,
        positional_bias_weights: Sequence[float] | None = None,
        positional_bias_positive_only: bool = False,
        logits_temperature: float = 1.0,
        summarize_grads_and_vars: bool = False,
        enable_summaries: bool = True,
        train_step_counter: tf.Variable | None = None,
        penalty_mixture_coefficient: float = 1.0,
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        seed: int | None = None,
    ) -> None:
        """Makes the policy.

        Args:
          time_step_spec: A `TimeStep` of specs, with features of items.
          action_spec: A bounded int32 spec `[slots]`, from 0.
          scoring_network: Maps observations of any number of items to a score for each.
          optimizer: The optimizer; None for an agent that never trains.
          policy_type: The policy.
          error_loss_fn: The loss of scores and predictions, for each element.
          feedback_model: What rewards tell.
          non_click_score: The score of items before the click; None for -1. Only for
            cascading feedback.
          positional_bias_type: How slots are weighted: a `PositionalBiasType`, or
            "base", "exponent" or None as in TF-Agents 0.19.
          positional_bias_severity: s.
          positional_bias_weights: The given numbers, one for each slot.
          positional_bias_positive_only: Whether only positive scores are so weighted.
          logits_temperature: See `RankingPolicy`.
          penalty_mixture_coefficient: See `RankingPolicy`.
          emit_log_probability: See `RankingPolicy`.

        Raises:
          ValueError: Arguments do not fit together.
        """
        validation.check_time_step_spec(time_step_spec)
        observation = time_step_spec.observation
        per_arm = observation[bandit_spec_utils.PER_ARM_FEATURE_KEY]
        num_slots = int(action_spec.shape[0])
        is_cascading = feedback_model != FeedbackModel.SCORE_VECTOR
        if non_click_score is not None and not is_cascading:
            raise ValueError(
                f"non_click_score: got {non_click_score} with SCORE_VECTOR, expected "
                "None; it is for CASCADING feedback."
            )
        arguments = [int(per_arm.shape[0]), num_slots, time_step_spec, scoring_network]
        policy = _POLICIES[policy_type](
            *arguments,
            penalty_mixture_coefficient=penalty_mixture_coefficient,
            logits_temperature=logits_temperature,
            emit_log_probability=emit_log_probability,
            seed=seed,
        )
        slotted = bandit_spec_utils.create_per_arm_observation_spec(
            observation[bandit_spec_utils.GLOBAL_FEATURE_KEY].shape[-1],
            per_arm.shape[-1],
            num_slots,
            bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY in observation,
        )
        super().__init__(
            policy,
            training_data_spec=policy.trajectory_spec._replace(
                observation=slotted, action=(), policy_info=()
            ),
            summarize_grads_and_vars=summarize_grads_and_vars,
            enable_summaries=enable_summaries,
            train_step_counter=train_step_counter,
            name=name,
        )
        self._network = policy._network
        self._num_slots = num_slots
        self._error_loss_fn = loss_utils.element_wise(error_loss_fn)
        self._is_cascading = is_cascading
        self._non_click_score = -1.0 if non_click_score is None else non_click_score
        self._biases = _biases(
            _bias_type(positional_bias_type),
            num_slots,
            positional_bias_severity,
            positional_bias_weights,
        )
        self._biases_positive_only = positional_bias_positive_only
        self._set_only_part([self._network], optimizer)

    def _preprocess_sequence(self, experience: Any) -> Any:
        """Takes the features of the items in the slots, and leaves out the others."""
        observation = dict(experience.observation)
        key = bandit_spec_utils.PER_ARM_FEATURE_KEY
        items = observation[key]
        # An empty slot gets any item: it does not count.
        index = tf.minimum(experience.action, items.shape[2] - 1)
        observation[key] = tf.gather(items, index, batch_dims=2)
        key = bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY
        if key in observation:
            observation[key] = tf.minimum(observation[key], self._num_slots)
        return experience._replace(observation=observation, action=(), policy_info=())

    def _loss_of(self, rows: bandit_agent.Rows, training: bool) -> tf.Tensor:
        score, counts = self._scores(rows.reward)
        key = bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY
        if key in rows.observation:
            number = rows.observation[key]
            counts *= tf.sequence_mask(number, self._num_slots, tf.float32)
        biases = self._biases
        if self._biases_positive_only:
            biases = tf.where(score > 0, biases, 1.0)
        weight = rows.weights[:, tf.newaxis] * counts * biases
        predicted = network_outputs.rewards_of(
            self._network, rows.observation, training
        )
        error = self._error_loss_fn(score, predicted)
        return tf.math.divide_no_nan(
            tf.reduce_sum(error * weight), tf.reduce_sum(weight)
        )

    def _scores(self, reward: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the scores of the slots, and whether they count, float32 `[n, S]`."""
        if not self._is_cascading:
            return reward, tf.ones_like(reward)
        index = reward[CHOSEN_INDEX]
        score = compute_score_tensor_for_cascading(
            index, reward[CHOSEN_VALUE], self._num_slots, self._non_click_score
        )
        return score, tf.sequence_mask(index + 1, self._num_slots, tf.float32)


_POLICIES: dict[RankingPolicyType, Any] = {
    RankingPolicyType.UNKNOWN: ranking_policy.PenalizeCosineDistanceRankingPolicy,
    RankingPolicyType.COSINE_DISTANCE: (
        ranking_policy.PenalizeCosineDistanceRankingPolicy
    ),
    RankingPolicyType.NO_PENALTY: ranking_policy.NoPenaltyRankingPolicy,
    RankingPolicyType.DESCENDING_SCORES: ranking_policy.DescendingScoreRankingPolicy,
}


def compute_score_tensor_for_cascading(
    chosen_index: tf.Tensor,
    chosen_value: tf.Tensor,
    num_slots: int,
    non_click_score: float = -1.0,
) -> tf.Tensor:
    """Returns the scores of slots, float32 `[n, S]`.

    Args:
      chosen_index: The slots of the clicks, int32 `[n]`; S if there was none.
      chosen_value: The values of the clicks, `[n]`.
      num_slots: S.
      non_click_score: The score of the slots before a click; those after it have 0.
    """
    before = tf.sequence_mask(chosen_index, num_slots, tf.float32)
    value = tf.cast(chosen_value, tf.float32)[:, tf.newaxis]
    return value * tf.one_hot(chosen_index, num_slots) + non_click_score * before


def _bias_type(given: PositionalBiasType | str | None) -> PositionalBiasType:
    """Returns the type of a type, or of a name of TF-Agents 0.19."""
    named = {
        None: PositionalBiasType.UNSET,
        "base": PositionalBiasType.BASE,
        "exponent": PositionalBiasType.EXPONENT,
    }
    if isinstance(given, PositionalBiasType):
        return given
    if given not in named:
        raise ValueError(
            f"positional_bias_type: got {given!r}, expected a PositionalBiasType, "
            "'base', 'exponent' or None; give one of them."
        )
    return named[given]


def _biases(
    kind: PositionalBiasType,
    num_slots: int,
    severity: float | None,
    weights: Sequence[float] | None,
) -> tf.Tensor:
    """Returns the weights of slots, float32 `[S]`."""
    place = tf.range(num_slots, dtype=tf.float32)
    if kind == PositionalBiasType.FIXED_BIAS_WEIGHTS:
        if weights is None or len(weights) != num_slots:
            raise ValueError(
                f"positional_bias_weights: got {weights}, expected {num_slots} numbers,"
                " one for each slot; give them."
            )
        return tf.constant(weights, tf.float32)
    if kind == PositionalBiasType.UNSET:
        return tf.ones_like(place)
    if severity is None:
        raise ValueError(
            f"positional_bias_severity: got None with {kind.name}, expected a number; "
            "give it."
        )
    is_base = kind == PositionalBiasType.BASE
    return tf.pow(place + 1, severity) if is_base else tf.pow(severity, place)
