"""Distributional MPO for an `EnvironmentLoop`, with a `tfrl.agents.DmpoAgent`.

>>> from tfrl.acme.agents import agent
>>> from tfrl.acme.agents.tf import dmpo
>>> issubclass(dmpo.DistributionalMPO, agent.Agent)
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
