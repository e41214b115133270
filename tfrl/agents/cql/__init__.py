"""Conservative Q-learning on SAC, and on double DQN (Kumar et al., 2020).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.cql import CqlSacAgent
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> specs = tf.TensorSpec([3], tf.float32), BoundedTensorSpec([1], tf.float32, -2, 2)
>>> agent = CqlSacAgent(
...     time_step.time_step_spec(specs[0]),
...     specs[1],
...     networks.CriticNetwork(specs, joint_fc_layer_params=(64, 64)),
...     networks.ActorDistributionNetwork(
...         *specs, continuous_projection_net=TanhNormalProjectionNetwork
...     ),
...     *(keras.optimizers.Adam(3e-4) for _ in range(3)),
...     cql_alpha=5.0,
...     num_cql_samples=10,
...     include_critic_entropy_term=False,
...     use_lagrange_cql_alpha=False,
...     target_update_tau=0.005,
...     gamma=0.99,
... )
>>> agent.initialize()
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
