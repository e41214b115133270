"""Rankings of items, and users who click by the items' relevance."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.bandits.environments import (
    bandit_py_environment,
    bandit_tf_environment,
    rounds,
)
from tfrl.specs import array_spec, bandit_spec_utils, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds

CHOSEN_INDEX = "chosen_index"
CHOSEN_VALUE = "chosen_value"


class FeedbackModel(enum.IntEnum):
    """What the reward tells. To `RankingAgent`, UNKNOWN is CASCADING.

    CASCADING is a dictionary of the slot of the click, `chosen_index` (the number of
    slots if there was none), and its `chosen_value`. SCORE_VECTOR is a number for each
    slot.
    """

    UNKNOWN = 0
    CASCADING = 1
    SCORE_VECTOR = 2


class ClickModel(enum.IntEnum):
    """How users choose; see `RankingPyEnvironment`."""

    UNKNOWN = 0
    GHOST_ACTIONS = 1
    DISTANCE_BASED = 2


class _Ranking(bandit_py_environment.FeaturesPyEnvironment):
    """Base of rankings: an action is the items in the slots, int32 `[B, S]`."""

    def __init__(
        self,
        *args: Any,
        num_slots: int,
        seed: int | None,
        reward_spec: Any = None,
    ) -> None:
        self._num_slots = num_slots
        self._rng = bandit_py_environment.make_rng(seed)
        scores = array_spec.ArraySpec([num_slots], np.float32, "score_vector")
        super().__init__(
            *args, reward_spec=reward_spec or scores, action_shape=(num_slots,)
        )


class RankingPyEnvironment(_Ranking):
    """A user clicks at most one item, by its relevance `item' W global`.

    With GHOST_ACTIONS, an item for each feature is added, a unit vector, so that
    rankings which cover the features well are clicked more often. Noise from a standard
    normal distribution is added to the relevances, and the user chooses with
    probabilities that are proportional to their sigmoids; an added item is no click.
    With DISTANCE_BASED, the user clicks the most relevant item, or the first that is
    relevant enough if `real_cascade`, and none if all relevances are below
    `distance_threshold`.

    The reward is `{"chosen_index": [B], "chosen_value": [B]}` with CASCADING: the slot
    and 1, or the number of slots and 0 without a click. With SCORE_VECTOR it is 1 for
    the clicked slot and else 0, `[B, S]`.
    """

    def __init__(
        self,
        global_sampling_fn: Callable[[], Any],
        item_sampling_fn: Callable[[], Any],
        num_items: int,
        num_slots: int,
        scores_weight_matrix: Any,
        feedback_model: int = FeedbackModel.CASCADING,
        click_model: int = ClickModel.GHOST_ACTIONS,
        real_cascade: bool = False,
        distance_threshold: float | None = None,
        batch_size: int | None = 1,
        name: str | None = "ranking_environment",
        *,
        seed: int | None = None,
    ) -> None:
        """Stores the functions.

        Args:
          global_sampling_fn: Draws the features of a user, `[G]`.
          item_sampling_fn: Draws the features of an item, `[P]`.
          num_items: The number of items of a round.
          num_slots: The number of slots, S.
          scores_weight_matrix: W, `[P, G]`.
          feedback_model: CASCADING or SCORE_VECTOR.
          click_model: GHOST_ACTIONS or DISTANCE_BASED.
          real_cascade: See above.
          distance_threshold: See above.
          batch_size: The number of members, B.
          name: The environment's name.
          seed: The seed of the clicks; None follows `tf.random.set_seed`.

        Raises:
          ValueError: A model is UNKNOWN, or `distance_threshold` is missing.
        """
        for what, model, kinds in (
            ("feedback_model", feedback_model, FeedbackModel),
            ("click_model", click_model, ClickModel),
        ):
            if model not in list(kinds)[1:]:
                raise ValueError(
                    f"{what}: got {model}, expected one of {list(kinds)[1:]}."
                )
        self._has_ghosts = click_model == ClickModel.GHOST_ACTIONS
        if not self._has_ghosts and distance_threshold is None:
            raise ValueError(
                "distance_threshold: got None, expected a relevance with "
                "DISTANCE_BASED; give one."
            )
        self._weights = np.asarray(scores_weight_matrix)
        self._real_cascade = real_cascade
        self._threshold = distance_threshold
        self._is_cascading = feedback_model == FeedbackModel.CASCADING
        spec = {
            CHOSEN_INDEX: array_spec.BoundedArraySpec([], np.int32, 0, num_slots),
            CHOSEN_VALUE: array_spec.ArraySpec([], np.float32),
        }
        super().__init__(
            global_sampling_fn,
            item_sampling_fn,
            num_items,
            batch_size,
            name,
            num_slots=num_slots,
            seed=seed,
            reward_spec=spec if self._is_cascading else None,
        )

    def _apply_action(self, action: Any) -> Any:
        of_all, items = map(np.stack, zip(*self._features_of(action), strict=True))
        relevance = np.einsum("bsp,pg,bg->bs", items, self._weights, of_all)
        if self._has_ghosts:
            # The relevance of unit vectors.
            ghosts = of_all @ self._weights.T
            chosen = self._drawn_slot(np.concatenate([relevance, ghosts], axis=1))
        else:
            last = np.full([self._size, 1], self._threshold)
            scores = np.concatenate([relevance, last], axis=1)
            if self._real_cascade:
                scores = scores >= self._threshold
            chosen = scores.argmax(axis=1)
        has_click = (chosen < self._num_slots).astype(np.float32)
        if self._is_cascading:
            return {CHOSEN_INDEX: chosen, CHOSEN_VALUE: has_click}
        return self._cascading_to_scorevector(chosen, has_click)

    def _drawn_slot(self, relevance: np.ndarray) -> np.ndarray:
        """Draws a slot of each row, the number of slots for those after the last."""
        noisy = self._rng.normal(relevance)
        # The largest of logarithms of probabilities with Gumbel's noise is a draw.
        scores = self._rng.gumbel(-np.logaddexp(0, -noisy))
        return np.minimum(scores.argmax(axis=1), self._num_slots)

    def _cascading_to_scorevector(
        self, chosen_items: np.ndarray, chosen_values: np.ndarray
    ) -> np.ndarray:
        """Returns `[B, S]`: the value in the chosen slot, and else 0."""
        slots = np.arange(self._num_slots)
        is_chosen = slots == np.asarray(chosen_items)[:, np.newaxis]
        return is_chosen * np.asarray(chosen_values, np.float32)[:, np.newaxis]


class ExplicitPositionalBiasRankingEnvironment(_Ranking):
    """A user clicks each item that is seen and relevant, with independent chances.

    The reward is 1 for the clicked slots and else 0, `[B, S]`.
    """

    def __init__(
        self,
        global_sampling_fn: Callable[[], Any],
        item_sampling_fn: Callable[[], Any],
        relevance_fn: Callable[[Any, Any], float],
        num_items: int,
        observation_probs: Sequence[float],
        batch_size: int = 1,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Stores the functions.

        Args:
          global_sampling_fn: Draws the features of a user.
          item_sampling_fn: Draws the features of an item.
          relevance_fn: Returns the probability, from the features of a user and of an
            item, that the user clicks the item when it is seen; clipped to [0, 1].
          num_items: The number of items of a round.
          observation_probs: The probability that a user sees each slot, `[S]`.
          batch_size: The number of members, B.
          name: The environment's name.
          seed: See `RankingPyEnvironment`.

        Raises:
          ValueError: A number is no probability.
        """
        self._probabilities = rounds.probabilities(
            "observation_probs", observation_probs
        )
        self._relevance_fn = relevance_fn
        super().__init__(
            global_sampling_fn,
            item_sampling_fn,
            num_items,
            batch_size,
            name,
            num_slots=len(self._probabilities),
            seed=seed,
        )

    def _apply_action(self, action: Any) -> np.ndarray:
        relevance = [
            [self._relevance_fn(of_all, item) for item in items]
            for of_all, items in self._features_of(action)
        ]
        chance = np.clip(relevance, 0.0, 1.0) * self._probabilities
        return self._rng.random(chance.shape) < chance


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
