"""Predicted rewards, with a uniform arm now and then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from tfrl.bandits.agents import greedy_reward_prediction_agent
from tfrl.bandits.policies import greedy_reward_prediction_policy


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
        info_fields_to_inherit_from_greedy: Sequence[str] = (),
        **settings: Unpack[greedy_reward_prediction_agent.RewardSettings],
    ) -> None:
        """Makes the agent; see `GreedyRewardPredictionAgent` for other arguments.

        Args:
          epsilon: The probability of a uniform arm: a number, a variable, or a function
            that returns one.
          info_fields_to_inherit_from_greedy: Has no effect; the fields of the info are
            those of the predictions, also for uniform arms.
        """
        del info_fields_to_inherit_from_greedy
        self._epsilon = epsilon
        super().__init__(
            time_step_spec, action_spec, reward_network, optimizer, *args, **settings
        )

    def _make_policy(self, **kwargs: Any) -> Any:
        policy = greedy_reward_prediction_policy.EpsilonGreedyRewardPredictionPolicy
        return policy(epsilon=self._epsilon, **kwargs)
