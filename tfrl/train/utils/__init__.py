"""Helpers of scripts that train with a `Learner` and an `Actor`.

>>> from tfrl import environments
>>> from tfrl.train import utils
>>> environment = environments.suite_gym.load("CartPole-v1")
>>> observation_spec, action_spec, _ = utils.spec_utils.get_tensor_specs(environment)
>>> observation_spec.shape, action_spec.maximum.tolist()
(TensorShape([4]), 1)
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
