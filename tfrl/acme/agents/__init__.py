"""Agents for an `EnvironmentLoop`: an actor and a learner in one.

>>> from tfrl.acme import agents
>>> issubclass(agents.tf.d4pg.D4PG, agents.agent.Agent)
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
