"""Draws candidate actions for the cross-entropy method, and refits their distribution.

>>> import tensorflow as tf
>>> from tfrl.policies.samplers import qtopt_cem_actions_sampler_continuous
>>> from tfrl.specs import BoundedTensorSpec
>>> sampler = qtopt_cem_actions_sampler_continuous.GaussianActionsSampler(
...     BoundedTensorSpec([2], tf.float32, -1.0, 1.0)
... )
>>> actions = sampler.sample_batch_and_clip(
...     8, tf.zeros([3, 2]), tf.ones([3, 2]), seed=tf.constant([1, 2])
... )
>>> actions.shape
TensorShape([3, 8, 2])
>>> best = tf.constant([[0, 1], [2, 3], [4, 5]])
>>> mean, variance = sampler.refit_distribution_to(best, actions)
>>> mean.shape
TensorShape([3, 2])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
