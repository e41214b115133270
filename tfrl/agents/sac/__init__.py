"""Soft Actor-Critic (Haarnoja et al., 2018).

The projection network keeps actions inside their bounds:

>>> import keras
>>> from tfrl.agents.sac import SacAgent, TanhNormalProjectionNetwork
>>> from tfrl.environments import native
>>> from tfrl.networks import ActorDistributionNetwork, CriticNetwork
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = SacAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticNetwork(specs, joint_fc_layer_params=(256, 256)),
...     ActorDistributionNetwork(
...         *specs, continuous_projection_net=TanhNormalProjectionNetwork
...     ),
...     actor_optimizer=keras.optimizers.Adam(3e-4),
...     critic_optimizer=keras.optimizers.Adam(3e-4),
...     alpha_optimizer=keras.optimizers.Adam(3e-4),
...     gamma=0.99,
...     target_update_tau=0.005,
... )
>>> agent.policy.action(environment.reset()).action.shape
TensorShape([1, 1])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
