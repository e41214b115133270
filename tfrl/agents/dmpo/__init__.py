"""MPO with a critic of value distributions, as in Acme (Hoffman et al., 2020).

The atoms of the critic's distributions span the discounted returns:

>>> import keras
>>> from tfrl import networks
>>> from tfrl.agents.dmpo import DmpoAgent
>>> from tfrl.environments import native
>>> environment = native.load("Pendulum-v1", 1)
>>> agent = DmpoAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     policy_network=networks.Sequential(
...         [
...             networks.LayerNormMLP((64, 64), activate_final=True),
...             networks.MultivariateNormalDiagHead(1, use_tfd_independent=True),
...         ]
...     ),
...     critic_network=networks.Sequential(
...         [
...             networks.CriticMultiplexer(),
...             networks.LayerNormMLP((64, 64), activate_final=True),
...             networks.DiscreteValuedHead(vmin=-1000, vmax=0, num_atoms=51),
...         ]
...     ),
...     policy_optimizer=keras.optimizers.Adam(1e-4),
...     critic_optimizer=keras.optimizers.Adam(1e-4),
...     dual_optimizer=keras.optimizers.Adam(1e-2),
... )
>>> agent.policy.action(environment.reset()).action.shape
TensorShape([1, 1])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
