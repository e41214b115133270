"""Compares the values that an agent predicts with the actual returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.metrics import episode_sums
from tfrl.specs import tensor_spec


class ValueCheck:
    """Sums the discounted rewards of running episodes.

    The actual return of an episode is the discounted sum of its rewards. If the episode
    was truncated, the discounted value of its last time step is added, as in the
    targets of the values.

    Attributes:
      names: The names of the sums.
    """

    names = ("discounted", "power", "predicted")

    def __init__(
        self, values: Callable[[Any], tf.Tensor | None], discount: Any
    ) -> None:
        """Stores the arguments.

        Args:
          values: A function of time steps `[B, ...]` that returns the values, `[B]`, in
            the units of the rewards, such as `TFAgent.predicted_returns`.
          discount: The discount of a step in these values.
        """
        self._values = values
        self._discount = discount

    def add(
        self, sums: dict[str, tf.Tensor], time_step: Any, reached: Any
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Adds a step to the sums.

        Args:
          sums: The sum so far of each of `names`, `[B]`.
          time_step: The time step before the step.
          reached: The time step after it.

        Returns:
          The new sums, and the return so far of each episode, `[B]`, with the value of
          the time step reached if this is its last.
        """
        first, last = time_step.is_first(), reached.is_last()
        zeros = tf.zeros_like(sums["power"])
        # The networks are applied at the ends of episodes alone.
        here, there = tf.cond(
            tf.reduce_any(first | last),
            lambda: (self._values(time_step), self._values(reached)),
            lambda: (zeros, zeros),
        )
        power = tf.where(first, 1.0, sums["power"])
        reward = episode_sums.total_reward(reached.reward, tf.float32)
        discounted = tf.where(first, 0.0, sums["discounted"]) + power * reward
        power *= tf.cast(self._discount, tf.float32)
        added = {
            "discounted": discounted,
            "power": power,
            "predicted": tf.where(first, here, sums["predicted"]),
        }
        return added, discounted + power * reached.discount * there


def of_agent(agent: Any, environment: Any) -> ValueCheck | None:
    """Returns the check of an agent's values; None if it predicts no returns.

    Args:
      agent: A `TFAgent`.
      environment: The environment of the evaluation.
    """
    predicts = []

    @tf.function(autograph=False)
    def trial(time_step: Any) -> None:
        predicts.append(agent.predicted_returns(time_step) is not None)

    trial.get_concrete_function(
        tensor_spec.add_outer_dims_nest(
            environment.time_step_spec(), (environment.batch_size,)
        )
    )
    if not predicts[0]:
        return None
    return ValueCheck(agent.predicted_returns, agent.discount_factor())
