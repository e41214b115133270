"""EDAC: SAC with many, diverse critics, for recordings (An et al., 2021).

>>> import keras
>>> from tfrl.agents import EdacAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = EdacAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=10),
...     ActorDistributionNetwork(
...         *specs, continuous_projection_net=TanhNormalProjectionNetwork
...     ),
...     actor_optimizer=keras.optimizers.Adam(3e-4),
...     critic_optimizer=keras.optimizers.Adam(3e-4),
...     alpha_optimizer=keras.optimizers.Adam(3e-4),
...     gamma=0.99,
...     target_update_tau=0.005,
... )
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
