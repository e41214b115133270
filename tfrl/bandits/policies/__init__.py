"""Policies of bandits, which choose among the allowed arms of each row.

>>> from tfrl.bandits import environments, policies
>>> bandit = environments.load("WheelBandit-v0", batch_size=3, seed=0)
>>> sums = policies.linear_models.LinearBanditVariableCollection(2, num_models=5)
>>> policy = policies.LinearBanditPolicy(
...     bandit.action_spec(),
...     sums.cov_matrix,
...     sums.data_vector,
...     sums.num_samples,
...     bandit.time_step_spec(),
... )
>>> policy.action(bandit.reset()).action.shape
TensorShape([3])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
