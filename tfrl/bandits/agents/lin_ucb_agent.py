"""LinUCB: upper confidence bounds of linear models."""

from tfrl.bandits.agents import linear_bandit_agent


class LinearUCBAgent(linear_bandit_agent.OnePolicyAgent):
    """LinUCB: the arm with the largest upper confidence bound (Li et al., 2010)."""

    _own_policy = linear_bandit_agent.ExplorationPolicy.linear_ucb_policy
