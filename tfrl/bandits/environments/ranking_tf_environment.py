"""Rankings of random items, and users who click by the items' relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment, rounds
from tfrl.bandits.environments.ranking_environment import CHOSEN_INDEX, CHOSEN_VALUE
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds


class RankingTFEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """Users see the slots from the first on, and click the first relevant item.

    Features are standard normal numbers. With the relevance `u = item' W global`, a
    user who looks at slot k clicks with the probability `sigmoid(u)`, and looks at the
    slot with the probability `observation_probs[k]`. Slots without an item have the
    number `num_items`, and no clicks.

    With `is_cascading` the reward is `{"chosen_index": [B], "chosen_value": [B]}` of
    the first click (the number of slots and 0 without one), and else 1 for all clicked
    slots, `[B, S]`.
    """

    def __init__(
        self,
        scores_weight_matrix: Any,
        num_items: int,
        observation_probs: Sequence[float],
        batch_size: int = 1,
        *,
        is_cascading: bool = True,
        seed: int | None = None,
        name: str | None = None,
    ) -> None:
        """Makes the variables.

        Args:
          scores_weight_matrix: W, `[P, G]`.
          num_items: The number of items of a round.
          observation_probs: The probability that a user looks at each slot.
          batch_size: The number of members.
          is_cascading: Whether the reward is the first click alone.
          seed: See `BanditTFEnvironment`.
          name: The module's name.

        Raises:
          ValueError: A number is no probability.
        """
        probabilities = rounds.probabilities("observation_probs", observation_probs)
        self._matrix = tf.constant(scores_weight_matrix, tf.float32)
        self._probabilities = tf.constant(probabilities)
        self._num_slots = num_slots = len(probabilities)
        self._num_items = num_items
        self._is_cascading = is_cascading
        size, num_global = self._matrix.shape
        spec = bandit_spec_utils.create_per_arm_observation_spec(
            num_global, size, num_items
        )
        reward: Any = tf.TensorSpec([num_slots], tf.float32)
        if is_cascading:
            reward = {
                CHOSEN_INDEX: tensor_spec.BoundedTensorSpec([], tf.int32, 0, num_slots),
                CHOSEN_VALUE: tf.TensorSpec([], tf.float32),
            }
        super().__init__(
            ts.time_step_spec(spec, reward),
            tensor_spec.BoundedTensorSpec([num_slots], tf.int32, 0, num_items - 1),
            batch_size,
            name,
            seed=seed,
        )

    def _observe(self) -> Any:
        size, num_global = self._matrix.shape
        for_global, for_items = seeds.split_seed(self._next_seed(), 2)
        common = seeds.normal(for_global, [self.batch_size, num_global])
        items = seeds.normal(for_items, [self.batch_size, self._num_items, size])
        return {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: common,
            bandit_spec_utils.PER_ARM_FEATURE_KEY: items,
        }

    def _apply_action(self, action: Any) -> Any:
        index = tf.minimum(action, self._num_items - 1)
        observation = self._latest.read().observation
        of_all = observation[bandit_spec_utils.GLOBAL_FEATURE_KEY]
        items = observation[bandit_spec_utils.PER_ARM_FEATURE_KEY]
        of_all = tf.matmul(of_all, self._matrix, transpose_b=True)
        relevance = tf.gather(tf.linalg.matvec(items, of_all), index, batch_dims=1)
        probability = tf.sigmoid(relevance) * self._probabilities
        probability = tf.where(action < self._num_items, probability, 0.0)
        unit = seeds.uniform(self._next_seed(), tf.shape(probability))
        clicks = tf.cast(unit < probability, tf.float32)
        if not self._is_cascading:
            return clicks
        has_click = tf.reduce_any(clicks > 0, axis=1)
        first = tf.argmax(clicks, axis=1, output_type=tf.int32)
        return {
            CHOSEN_INDEX: tf.where(has_click, first, self._num_slots),
            CHOSEN_VALUE: tf.cast(has_click, tf.float32),
        }
