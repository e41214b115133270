"""Helpers for drivers of bandits that a program writes itself.

>>> from tfrl import policies
>>> from tfrl.bandits import environments
>>> from tfrl.bandits.drivers import driver_utils
>>> bandit = environments.load("WheelBandit-v0", batch_size=2)
>>> policy = policies.RandomTFPolicy(bandit.time_step_spec(), bandit.action_spec())
>>> time_step = bandit.step(policy.action(bandit.reset()).action)
>>> step = policy.action(time_step)
>>> reached = bandit.step(step.action)
>>> frame = driver_utils.trajectory_for_bandit(time_step, step, reached)
>>> frame.is_first().numpy(), frame.is_last().numpy()
(array([ True,  True]), array([ True,  True]))
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
