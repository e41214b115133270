"""Thompson's sampling with linear models, at TF-Agents' path."""

from tfrl.bandits.policies import linear_bandit_policy


class LinearThompsonSamplingPolicy(linear_bandit_policy.OneStrategyPolicy):
    """A `LinearBanditPolicy` with the sampling strategy."""

    _own_strategy = linear_bandit_policy.ExplorationStrategy.sampling
