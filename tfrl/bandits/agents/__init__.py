"""Agents of bandits.

>>> from tfrl import train
>>> from tfrl.bandits import agents, environments
>>> bandit = environments.load("LinearBandit-v0", batch_size=8, seed=0)
>>> agent = agents.LinearUCBAgent(bandit.time_step_spec(), bandit.action_spec())
>>> loop = train.OnPolicyLoop(bandit, agent, collect_steps_per_iteration=2, seed=0)
>>> loop.run(100).environment_steps
1600
>>> agent.theta.shape
TensorShape([5, 15])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
