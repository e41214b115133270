"""Thompson's sampling with linear models."""

from tfrl.bandits.agents import linear_bandit_agent


class LinearThompsonSamplingAgent(linear_bandit_agent.OnePolicyAgent):
    """Thompson's sampling with linear models (Agrawal and Goyal, 2013)."""

    _own_policy = linear_bandit_agent.ExplorationPolicy.linear_thompson_sampling_policy
