"""Upper confidence bounds of linear models, at TF-Agents' path."""

from tfrl.bandits.policies import linear_bandit_policy


class LinearUCBPolicy(linear_bandit_policy.OneStrategyPolicy):
    """A `LinearBanditPolicy` with the optimistic strategy."""

    _own_strategy = linear_bandit_policy.ExplorationStrategy.optimistic
