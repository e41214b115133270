"""Policies that fill slots with items, in an order drawn by the items' scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy
from tfrl.policies import tf_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


class _Ranking(NamedTuple):
    """Items in the order of slots, int32 `[B, S]`, and log probabilities `[B]`."""

    items: tf.Tensor
    log_probability: tf.Tensor


class RankingPolicy(tf_policy.TFPolicy):
    """Base of policies whose action is the items in the slots, int32 `[B, S]`.

    A network maps `{"global": [B, G], "per_arm": [B, N, P]}` to scores `[B, N]`. If the
    observation says how many items there are, the others are padding. They are never
    chosen; slots that are left without an item have the number N. A subclass draws the
    items in `_rank`.
    """

    def __init__(
        self,
        num_items: int,
        num_slots: int,
        time_step_spec: ts.TimeStep,
        network: types.Network,
        penalty_mixture_coefficient: float = 1.0,
        logits_temperature: float = 1.0,
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          num_items: The number of items with the padding, N.
          num_slots: The number of slots, S.
          time_step_spec: A `TimeStep` of specs.
          network: The network of the scores.
          penalty_mixture_coefficient: How much the similarity to chosen items counts,
            for policies that penalise it.
          logits_temperature: What scores are divided by before items are drawn.
          name: The module's name.
          emit_log_probability: Whether the info has the logarithm of the probability of
            the ranking.
          seed: See `TFPolicy`.

        Raises:
          ValueError: There are more slots than items, or the temperature is not
            positive.
        """
        if num_slots > num_items:
            raise ValueError(
                f"num_slots: got {num_slots}, expected at most {num_items}, the number "
                "of items; give fewer slots."
            )
        number_checks.check_number(
            "logits_temperature",
            logits_temperature,
            0,
            excludes_low=True,
            remedy="1 is usual",
        )
        self._network, _ = network_outputs.built(network, time_step_spec)
        self._num_items, self._num_slots = num_items, num_slots
        self._penalty = penalty_mixture_coefficient
        self._temperature = logits_temperature
        super().__init__(
            time_step_spec,
            tensor_spec.BoundedTensorSpec([num_slots], tf.int32, 0, num_items - 1),
            info_spec=policy_utils.PolicyInfo(
                predicted_rewards_mean=tf.TensorSpec([num_items], tf.float32)
            ),
            clip=False,
            emit_log_probability=emit_log_probability,
            name=name,
            seed=seed,
        )

    @property
    def num_slots(self) -> int:
        """The number of slots."""
        return self._num_slots

    def _is_pure_tensorflow(self) -> bool:
        return type(self).__module__.startswith("tfrl.")

    def _rank(
        self, logits: tf.Tensor, features: tf.Tensor, seed: tf.Tensor
    ) -> _Ranking:
        """Returns the items in the slots.

        Args:
          logits: `[B, N]`, the least number for padding.
          features: The items' features, `[B, N, P]`.
          seed: A stateless seed.
        """
        raise NotImplementedError

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        observation = time_step.observation
        scores = network_outputs.rewards_of(self._network, observation)
        allowed = bandit_policy.allowed_arms(observation, None, self._num_items)
        logits = policy_utils.mask_values(scores / self._temperature, allowed)
        features = observation[bandit_spec_utils.PER_ARM_FEATURE_KEY]
        ranking = self._rank(logits, features, seed)
        number = tf.reduce_sum(tf.cast(allowed, tf.int32), axis=1, keepdims=True)
        has_item = tf.range(self._num_slots) < number
        items = tf.where(has_item, ranking.items, self._num_items)
        info = self._info_spec._replace(predicted_rewards_mean=scores)
        if self._emit_log_probability:
            info = info._replace(log_probability=ranking.log_probability)
        return policy_step.PolicyStep(items, policy_state, info)


class DescendingScoreRankingPolicy(RankingPolicy):
    """Ranks items by their scores."""

    def _rank(
        self, logits: tf.Tensor, features: tf.Tensor, seed: tf.Tensor
    ) -> _Ranking:
        del features, seed
        items = tf.math.top_k(logits, self._num_slots).indices
        return _Ranking(items, tf.zeros(tf.shape(logits)[:1]))


class NoPenaltyRankingPolicy(RankingPolicy):
    """Draws items without replacement by the softmax of their scores.

    The ranking has the distribution of Plackett and Luce. It is the order of the logits
    plus independent Gumbel numbers (Kool et al., "Stochastic beams and where to find
    them", 2019, arXiv:1903.06059), so one sort draws it.
    """

    def _rank(
        self, logits: tf.Tensor, features: tf.Tensor, seed: tf.Tensor
    ) -> _Ranking:
        del features
        noise = _gumbel(seed, tf.shape(logits))
        items = tf.math.top_k(logits + noise, self._num_slots).indices
        one_hot = tf.one_hot(items, self._num_items)
        before = tf.cumsum(one_hot, axis=1, exclusive=True) > 0
        left = tf.where(before, logits.dtype.min, logits[:, tf.newaxis])
        logs = _log_of_item(left, items)
        return _Ranking(items, tf.reduce_sum(logs, axis=1))


class PenalizeCosineDistanceRankingPolicy(RankingPolicy):
    """Draws items slot by slot, and lowers the logits of items like the chosen ones.

    After each slot, `c m` is added to the logit of each item, where c is
    `penalty_mixture_coefficient` and m the least of `-cos(item, j) - 1` over the chosen
    items j. As in TF-Agents, the penalty of an earlier item is added again after each
    later slot.
    """

    def _rank(
        self, logits: tf.Tensor, features: tf.Tensor, seed: tf.Tensor
    ) -> _Ranking:
        unit = tf.math.l2_normalize(tf.cast(features, tf.float32), axis=-1)
        similarity = -tf.matmul(unit, unit, transpose_b=True) - 1
        shape = tf.concat([[self._num_slots], tf.shape(logits)], axis=0)
        noise = _gumbel(seed, shape, batch_axis=1)
        least = logits.dtype.min

        def fill(state: Any, noise: tf.Tensor) -> Any:
            logits, lowest, _, _ = state
            item = tf.argmax(logits + noise, axis=1, output_type=tf.int32)
            log = _log_of_item(logits, item)
            lowest = tf.minimum(lowest, tf.gather(similarity, item, batch_dims=1))
            chosen = tf.one_hot(item, self._num_items, on_value=True, off_value=False)
            left = (logits > least / 2) & ~chosen
            later = tf.where(left, logits + self._penalty * lowest, least)
            return later, lowest, item, log

        first = tf.zeros_like(logits[:, 0])
        state = logits, tf.zeros_like(logits), tf.cast(first, tf.int32), first
        _, _, items, logs = tf.scan(fill, noise, state)
        return _Ranking(tf.transpose(items), tf.reduce_sum(logs, axis=0))


def _log_of_item(logits: tf.Tensor, item: tf.Tensor) -> tf.Tensor:
    """Returns the log probability of an item; 0 if there are no items left."""
    logs = tf.gather(tf.nn.log_softmax(logits), item, batch_dims=item.shape.rank)
    has_item = tf.reduce_max(logits, axis=-1) > logits.dtype.min / 2
    return tf.where(has_item, logs, 0.0)


def _gumbel(seed: tf.Tensor, shape: Any, batch_axis: int = 0) -> tf.Tensor:
    """Returns Gumbel numbers."""
    unit = tf.maximum(seeds.uniform(seed, shape, batch_axis=batch_axis), 2.0**-24)
    return -tf.math.log(-tf.math.log(unit))
