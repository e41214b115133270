"""Environments of TF-Agents' examples, for tests of recurrent networks.

>>> from tfrl.environments import suite_gym
>>> from tfrl.environments.examples import masked_cartpole
>>> suite_gym.load("MaskedCartPole-v0").observation_spec().shape
(2,)
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
