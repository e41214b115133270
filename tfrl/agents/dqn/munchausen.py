"""Munchausen: the settings of Munchausen DQN."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfrl import losses
from tfrl.utils import number_checks


@dataclasses.dataclass(frozen=True)
class Munchausen:
    """Adds the log-probability of the action taken to the reward.

    The policy is the softmax of the target network's values, and the target uses the
    soft value of the next state. Vieillard, Pietquin and Geist, "Munchausen
    reinforcement learning" (2020, arXiv:2007.14430), whose settings are the defaults.

    Attributes:
      alpha: The scale of the log-probability; 0 gives soft DQN.
      temperature: The temperature of the policy.
      lowest: The lowest value of temperature times log-probability, negative.
    """

    alpha: float = 0.9
    temperature: float = 0.03
    lowest: float = -1.0

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
          ValueError: A number is out of range.
          TypeError: A setting is not a number.
        """
        remedy = "the paper takes 0.9, 0.03 and -1"
        number_checks.check_number("alpha", self.alpha, 0, 1, remedy=remedy)
        number_checks.check_number(
            "temperature", self.temperature, 0, excludes_low=True, remedy=remedy
        )
        number_checks.check_number("lowest", self.lowest, high=0, remedy=remedy)

    def bonus(self, values: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Returns `losses.munchausen_bonus` with these settings."""
        return losses.munchausen_bonus(
            values, actions, self.alpha, self.temperature, self.lowest
        )
