"""Metrics of bandits: regret, and how often the best arm is missed.

>>> from tfrl import drivers, policies
>>> from tfrl.bandits import environments, metrics
>>> bandit = environments.load("BernoulliBandit-v0", seed=0)
>>> policy = policies.RandomTFPolicy(bandit.time_step_spec(), bandit.action_spec())
>>> regret = metrics.CumulativeRegretMetric(bandit)
>>> _ = drivers.DynamicStepDriver(bandit, policy, [regret], num_steps=100).run()
>>> bool(regret.result() > 10)
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
