"""Bandits: problems in TensorFlow by name, and base classes for your own.

`problems` has the usual ones, as pure functions that a compiled loop contains; `rounds`
makes one of your own functions. `BanditTFEnvironment` and `BanditPyEnvironment` are the
base classes of TF-Agents.

>>> from tfrl.bandits import environments
>>> bandit = environments.load("PaddedArmsBandit-v0", batch_size=2, seed=0)
>>> sorted(bandit.reset().observation)
['global', 'num_actions', 'per_arm']
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
