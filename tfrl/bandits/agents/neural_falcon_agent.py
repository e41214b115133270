"""Predicted rewards, with FALCON's exploration."""

from __future__ import annotations

from typing import Any

from tfrl.bandits.agents import greedy_reward_prediction_agent
from tfrl.bandits.policies import (
    falcon_reward_prediction_policy,
    reward_prediction_base_policy,
)


class NeuralFalconAgent(greedy_reward_prediction_agent.GreedyRewardPredictionAgent):
    """Explores less with more rows, and arms of low predicted rewards less than others.

    The agent counts the rows itself.
    """

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        reward_network: Any,
        optimizer: Any,
        exploitation_coefficient: Any = 1.0,
        max_exploration_probability_hint: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Makes the agent; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          exploitation_coefficient: See `FalconRewardPredictionPolicy`.
          max_exploration_probability_hint: See `FalconRewardPredictionPolicy`.
        """
        self._coefficient = exploitation_coefficient
        self._hint = max_exploration_probability_hint
        super().__init__(
            time_step_spec, action_spec, reward_network, optimizer, *args, **kwargs
        )

    def _make_policy(
        self, *args: Any, **kwargs: Any
    ) -> reward_prediction_base_policy.RewardPredictionBasePolicy:
        return falcon_reward_prediction_policy.FalconRewardPredictionPolicy(
            *args,
            num_samples=self._num_samples,
            exploitation_coefficient=self._coefficient,
            max_exploration_probability_hint=self._hint,
            **kwargs,
        )
