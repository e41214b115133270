"""The base of PPO, and A2C, IMPALA and PQN: what learns from fresh rollouts.

>>> import tensorflow as tf
>>> from tfrl.agents.on_policy.advantages import AdvantageEstimator
>>> estimator = AdvantageEstimator(discount_factor=0.5, lambda_=1.0)
>>> returns, advantages = estimator.estimate(
...     reward=tf.constant([[1.0, 1.0]]),
...     discount=tf.ones([1, 2]),
...     values=tf.constant([[1.0, 2.0, 4.0]]),
...     continues=tf.constant([[True, True]]),
... )
>>> returns.numpy().tolist(), advantages.numpy().tolist()
([[2.5, 3.0]], [[1.5, 1.0]])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
