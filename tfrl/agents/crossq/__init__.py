"""CrossQ: SAC without target networks (Bhatt et al., 2024).

The critics and the actor are normalized:

>>> import keras
>>> from tfrl.agents import CrossQAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticEnsembleNetwork
>>> from tfrl.networks.layers.bodies import batch_renormed
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = CrossQAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticEnsembleNetwork(specs, num_critics=2, body=batch_renormed),
...     ActorDistributionNetwork(
...         *specs,
...         body=batch_renormed,
...         continuous_projection_net=TanhNormalProjectionNetwork,
...     ),
...     actor_optimizer=keras.optimizers.Adam(1e-3, beta_1=0.5),
...     critic_optimizer=keras.optimizers.Adam(1e-3, beta_1=0.5),
...     alpha_optimizer=keras.optimizers.Adam(1e-3),
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
