"""QT-Opt: Q-learning of continuous actions without an actor (Kalashnikov et al., 2018).

>>> import keras
>>> from tfrl.agents import QtOptAgent
>>> from tfrl.environments import native
>>> from tfrl.networks import CriticNetwork
>>> from tfrl.policies.samplers import qtopt_cem_actions_sampler_continuous
>>> environment = native.load("Pendulum-v1", 1)
>>> specs = environment.observation_spec(), environment.action_spec()
>>> agent = QtOptAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     CriticNetwork(specs, joint_fc_layer_params=(64, 64)),
...     keras.optimizers.Adam(1e-3),
...     qtopt_cem_actions_sampler_continuous.GaussianActionsSampler(specs[1]),
...     target_update_tau=0.005,
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
