"""Predicted rewards, with a uniform arm now and then."""

from __future__ import annotations

from typing import Any

from tfrl.bandits.agents import greedy_reward_prediction_agent
from tfrl.bandits.policies import (
    greedy_reward_prediction_policy,
    reward_prediction_base_policy,
)


class NeuralEpsilonGreedyAgent(
    greedy_reward_prediction_agent.GreedyRewardPredictionAgent
):
    """Explores by uniform allowed arms with probability epsilon."""

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        reward_network: Any,
        optimizer: Any,
        epsilon: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Makes the agent; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          epsilon: The probability of a uniform arm: a number, a variable, or a function
            that returns one.
        """
        self._epsilon = epsilon
        super().__init__(
            time_step_spec, action_spec, reward_network, optimizer, *args, **kwargs
        )

    def _make_policy(
        self, *args: Any, **kwargs: Any
    ) -> reward_prediction_base_policy.RewardPredictionBasePolicy:
        policy = greedy_reward_prediction_policy.EpsilonGreedyRewardPredictionPolicy
        return policy(*args, epsilon=self._epsilon, **kwargs)
