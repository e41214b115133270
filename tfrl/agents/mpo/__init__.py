"""Maximum a posteriori policy optimisation (Abdolmaleki et al., 2018).

The policy is a network of normal distributions that are not squashed:

>>> import keras
>>> from tfrl.agents.mpo import MpoAgent
>>> from tfrl.environments import native
>>> from tfrl.networks import (
...     CriticNetwork,
...     LayerNormMLP,
...     MultivariateNormalDiagHead,
...     Sequential,
... )
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = MpoAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     Sequential(
...         [
...             LayerNormMLP((64, 64), activate_final=True),
...             MultivariateNormalDiagHead(1, use_tfd_independent=True),
...         ]
...     ),
...     CriticNetwork(specs, joint_fc_layer_params=(64, 64)),
...     policy_optimizer=keras.optimizers.Adam(1e-4),
...     critic_optimizer=keras.optimizers.Adam(1e-4),
...     dual_optimizer=keras.optimizers.Adam(1e-2),
... )
>>> agent.train_sequence_length
6
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
