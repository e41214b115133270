"""LinUCB: upper confidence bounds of linear models."""

from __future__ import annotations

from typing import Any

from tfrl.bandits.agents import linear_bandit_agent


class LinearUCBAgent(linear_bandit_agent.LinearBanditAgent):
    """LinUCB: the arm with the largest upper confidence bound (Li et al., 2010)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Makes the agent; see `LinearBanditAgent` for the other arguments."""
        policy = linear_bandit_agent.ExplorationPolicy.linear_ucb_policy
        super().__init__(policy, *args, **kwargs)
