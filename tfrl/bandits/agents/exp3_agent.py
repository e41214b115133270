"""Exp3, for rewards that an adversary may choose, without a context."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.agents import bandit_agent
from tfrl.bandits.policies import categorical_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks


def selective_sum(
    values: tf.Tensor, partitions: tf.Tensor, num_partitions: int
) -> tf.Tensor:
    """Returns the sums of the values of each partition, `[num_partitions]`.

    Args:
      values: Numbers.
      partitions: The partition of each, an integer, of the same shape.
      num_partitions: The number of partitions.
    """
    return tf.math.unsorted_segment_sum(values, partitions, num_partitions)


def exp3_update_value(reward: tf.Tensor, log_prob: tf.Tensor) -> tf.Tensor:
    """Returns `1 - (1 - r) / p`, the estimated reward of the chosen arm.

    Args:
      reward: The rewards r.
      log_prob: The logarithms of the probabilities p of the chosen arms.
    """
    return 1 - (1 - reward) * tf.exp(-log_prob)


class Exp3Agent(bandit_agent.SumsAgent):
    """Draws arms by `softmax(learning_rate S)`, with unbiased sums of rewards S.

    A row with the arm a, whose probability was p, and the reward r in [0, 1] subtracts
    `(1 - r) / p` from `S_a` (Lattimore and Szepesvari, "Bandit algorithms", 2020,
    algorithm 9, up to the same number for all arms). The expected change of each arm's
    sum is then its expected reward minus 1, whatever the probabilities are. The loss is
    minus the sum of the rewards.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        learning_rate: float,
        name: str | None = None,
        *,
        train_step_counter: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Makes the sums and the policy.

        Args:
          time_step_spec: A `TimeStep` of specs; observations are ignored.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          learning_rate: How much a difference of the sums counts.

        Raises:
          ValueError: The learning rate is negative.
        """
        number_checks.check_number(
            "learning_rate", learning_rate, 0, remedy="0.1 is usual"
        )
        num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        self._weights = tf.Variable(
            tf.zeros([num_actions]), trainable=False, name="weights"
        )
        self._learning_rate = tf.Variable(
            float(learning_rate), trainable=False, name="learning_rate"
        )
        policy = categorical_policy.CategoricalPolicy(
            self._weights,
            time_step_spec,
            action_spec,
            self._learning_rate,
            emit_log_probability=True,
            seed=seed,
        )
        super().__init__(policy, train_step_counter=train_step_counter, name=name)

    @property
    def weights(self) -> tf.Variable:
        """The sums S, `[A]`."""
        return self._weights

    @property
    def learning_rate(self) -> tf.Variable:
        """How much a difference of the sums counts."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self._learning_rate.assign(learning_rate)

    def _add(self, rows: bandit_agent.Rows) -> None:
        reward = tf.cast(rows.reward, tf.float32)
        value = exp3_update_value(reward, rows.policy_info.log_probability)
        # The 1 of the other arms changes all sums alike.
        change = rows.weights * (value - 1)
        sums = self._weights + selective_sum(change, rows.action, self.num_actions)
        # The largest stays 0, so that float32 is exact where it matters.
        self._weights.assign(sums - tf.reduce_max(sums))
