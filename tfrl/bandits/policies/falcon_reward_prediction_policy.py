"""FALCON's policy, whose exploration falls with the number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.bandits.policies import bandit_policy, reward_prediction_base_policy
from tfrl.policies import utils as policy_utils
from tfrl.policies.utils import BanditPolicyType

_LARGEST_GAMMA = 50_000.0
# The exploitation coefficients among which a hint chooses.
_COEFFICIENTS = [2.0**i for i in range(21)]


def get_number_of_trainable_elements(network: Any) -> int:
    """Returns the number of numbers in the trainable variables of a network."""
    return sum(math.prod(v.shape) for v in network.trainable_variables)


class FalconRewardPredictionPolicy(
    reward_prediction_base_policy.RewardPredictionBasePolicy
):
    """Draws an arm the less often, the more its predicted reward is below the best.

    With K allowed arms, an arm other than the best has the probability `1 / (K + gamma
    (f_best - f))`, with `gamma = min(50000, c sqrt(K n / parameters))` after n rows
    (Simchi-Levi and Xu, "Bypassing the monster", 2020, arXiv:2003.12699).
    """

    _policy_type = BanditPolicyType.FALCON

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        reward_network: Any,
        exploitation_coefficient: Any = 1.0,
        max_exploration_probability_hint: Any = None,
        *args: Any,
        num_samples_list: Sequence[tf.Variable] = (),
        **kwargs: Any,
    ) -> None:
        """Creates the policy; see `RewardPredictionBasePolicy` for other arguments.

        Args:
          time_step_spec: See the base class.
          action_spec: See the base class.
          reward_network: See the base class.
          exploitation_coefficient: c: a number, a variable, or a function that returns
            one.
          max_exploration_probability_hint: The largest probability of all arms but the
            best: the least power of two for c that reaches it, or the largest one; None
            takes `exploitation_coefficient`.
          *args: Further arguments of the base class.
          num_samples_list: The variables with the numbers of rows, whose sum is n; none
            for 0.
          **kwargs: Arguments of the base class.
        """
        super().__init__(time_step_spec, action_spec, reward_network, *args, **kwargs)
        self._num_samples = tuple(num_samples_list) or (tf.constant(0.0),)
        self._coefficient = exploitation_coefficient
        self._hint = max_exploration_probability_hint
        self._num_parameters = max(
            get_number_of_trainable_elements(self._reward_network), 1
        )

    @property
    def num_trainable_elements(self) -> int:
        """The number of the network's parameters, or 1 if it has none."""
        return self._num_parameters

    @property
    def num_samples_list(self) -> tuple[Any, ...]:
        """The numbers of rows."""
        return self._num_samples

    def _log_probabilities(self, predicted: bandit_policy.Prediction) -> tf.Tensor:
        allowed = predicted.allowed
        read = reward_prediction_base_policy.number
        if self._hint is None:
            coefficients, limit = [tf.maximum(read(self._coefficient), 0.0)], 1.0
        else:
            coefficients = _COEFFICIENTS
            limit = tf.clip_by_value(read(self._hint), 0.0, 1.0)
        number = tf.reduce_sum(tf.cast(allowed, tf.float32), axis=1)[:, None, None]
        rows = tf.reduce_sum(
            reward_prediction_base_policy.numbers_of(self._num_samples)
        )
        gamma = tf.sqrt(number * rows / self._num_parameters) * tf.stack(coefficients)
        gamma = tf.minimum(gamma, _LARGEST_GAMMA)
        mean = policy_utils.mask_values(predicted.mean, allowed)
        gaps = tf.reduce_max(mean, axis=1, keepdims=True) - predicted.mean
        best = tf.one_hot(
            policy_utils.masked_argmax(mean, allowed), mean.shape[1], dtype=tf.float32
        )
        is_other = tf.cast(allowed, tf.float32) - best
        # [B, A, coefficients].
        others = tf.math.divide_no_nan(1.0, number + gamma * gaps[..., tf.newaxis])
        others *= is_other[..., tf.newaxis]
        # The first coefficient that explores little enough, or the last.
        fits = tf.cast(tf.reduce_sum(others, axis=1)[:, :-1] <= limit, tf.int32)
        fits = tf.pad(fits, [[0, 0], [0, 1]], constant_values=1)
        index = tf.argmax(fits, axis=1, output_type=tf.int32)
        chosen = tf.gather(others, index, axis=2, batch_dims=1)
        rest = 1 - tf.reduce_sum(chosen, axis=1, keepdims=True)
        probability = chosen + best * rest
        return bandit_policy.log_of(probability)
