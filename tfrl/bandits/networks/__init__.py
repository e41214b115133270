"""Networks of bandits: for features of arms, and for variances of rewards.

>>> import tensorflow as tf
>>> from tfrl.bandits import environments, networks
>>> bandit = environments.load("PerArmBandit-v0", batch_size=2, seed=0)
>>> network = networks.create_feed_forward_common_tower_network(
...     bandit.observation_spec(), (8,), (8,), (8,)
... )
>>> rewards, _ = network(bandit.reset().observation)
>>> rewards.shape
TensorShape([2, 5])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
