"""Predicted rewards, with Boltzmann's exploration."""

from __future__ import annotations

from typing import Any, Unpack

from tfrl.bandits.agents import greedy_reward_prediction_agent
from tfrl.bandits.policies import boltzmann_reward_prediction_policy


class NeuralBoltzmannAgent(greedy_reward_prediction_agent.GreedyRewardPredictionAgent):
    """Draws arms by the softmax of their predicted rewards, or by Gumbel's noise."""

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        reward_network: Any,
        optimizer: Any,
        temperature: Any = 1.0,
        boltzmann_gumbel_exploration_constant: float | None = None,
        *args: Any,
        **settings: Unpack[greedy_reward_prediction_agent.RewardSettings],
    ) -> None:
        """Makes the agent; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          temperature: See `BoltzmannRewardPredictionPolicy`.
          boltzmann_gumbel_exploration_constant: See `BoltzmannRewardPredictionPolicy`.
        """
        self._temperature = temperature
        self._constant = boltzmann_gumbel_exploration_constant
        super().__init__(
            time_step_spec, action_spec, reward_network, optimizer, *args, **settings
        )

    def _make_policy(self, **kwargs: Any) -> Any:
        return boltzmann_reward_prediction_policy.BoltzmannRewardPredictionPolicy(
            temperature=self._temperature,
            boltzmann_gumbel_exploration_constant=self._constant,
            num_samples_list=self._num_samples,
            **kwargs,
        )
