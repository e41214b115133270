"""A policy that draws a network for each row by dropout."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy, greedy_reward_prediction_policy


class DropoutPolicy(greedy_reward_prediction_policy.GreedyRewardPredictionPolicy):
    """Chooses the largest reward of a `DropoutRewardNetwork` that the seed draws.

    `distribution` is that of the network without dropout, since there is no formula for
    the probabilities of the draws.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Creates the policy; see `RewardPredictionBasePolicy` for the arguments.

        Raises:
          ValueError: `emit_log_probability` is True.
        """
        super().__init__(**kwargs)
        if self._emit_log_probability:
            raise ValueError(
                "emit_log_probability: got True, expected False; the probabilities of "
                "dropout's draws have no formula; use BootstrappedAgent."
            )

    def _predict_by(
        self, observation: Any, seed: tf.Tensor
    ) -> bandit_policy.Prediction:
        output = self._reward_network.draw(observation, seed)
        return bandit_policy.Prediction(network_outputs.mean_of(output))
