"""Thompson's sampling with linear models."""

from __future__ import annotations

from typing import Any

from tfrl.bandits.agents import linear_bandit_agent


class LinearThompsonSamplingAgent(linear_bandit_agent.LinearBanditAgent):
    """Thompson's sampling with linear models (Agrawal and Goyal, 2013)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Makes the agent; see `LinearBanditAgent` for the other arguments."""
        policy = linear_bandit_agent.ExplorationPolicy.linear_thompson_sampling_policy
        super().__init__(policy, *args, **kwargs)
