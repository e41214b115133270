"""DroQ: SAC whose critics have dropout (Hiraoka et al., 2022).

>>> import keras
>>> from tfrl.agents import DroqAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = DroqAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=2, dropout=0.01, layer_norm=True),
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
