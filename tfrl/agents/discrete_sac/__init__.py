"""Soft Actor-Critic for discrete actions (Christodoulou, 2019).

The critics are Q-networks, and the actor gives a distribution:

>>> import keras
>>> from tfrl.agents import DiscreteSacAgent
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, QNetwork
>>> environment = native.load("CartPole-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = DiscreteSacAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     QNetwork(*specs),
...     ActorDistributionNetwork(*specs),
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
...     alpha_optimizer=keras.optimizers.Adam(1e-3),
...     gamma=0.99,
...     target_update_tau=0.02,
...     target_entropy=0.14,
... )
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
