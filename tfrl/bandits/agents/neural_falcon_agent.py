"""Predicted rewards, with FALCON's exploration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import tensorflow as tf

from tfrl.bandits.agents import greedy_reward_prediction_agent
from tfrl.bandits.policies import falcon_reward_prediction_policy


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
        num_samples_list: Sequence[tf.Variable] = (),
        exploitation_coefficient: Any = 1.0,
        max_exploration_probability_hint: Any = None,
        *args: Any,
        **settings: Unpack[greedy_reward_prediction_agent.SettingsBesideCounts],
    ) -> None:
        """Makes the agent; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          num_samples_list: See `GreedyRewardPredictionAgent`.
          exploitation_coefficient: See `FalconRewardPredictionPolicy`.
          max_exploration_probability_hint: See `FalconRewardPredictionPolicy`.
        """
        self._coefficient = exploitation_coefficient
        self._hint = max_exploration_probability_hint
        given: greedy_reward_prediction_agent.RewardSettings = {
            **settings,
            "num_samples_list": num_samples_list,
        }
        super().__init__(
            time_step_spec, action_spec, reward_network, optimizer, *args, **given
        )

    def _make_policy(self, **kwargs: Any) -> Any:
        return falcon_reward_prediction_policy.FalconRewardPredictionPolicy(
            exploitation_coefficient=self._coefficient,
            max_exploration_probability_hint=self._hint,
            num_samples_list=self._num_samples,
            **kwargs,
        )
