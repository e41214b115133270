"""dm_env environments as `PyEnvironment`s, and the state of dm_control's tasks.

>>> from tfrl.environments.dm_env import dm_env_wrapper
>>> from tfrl.environments import PyToDMWrapper, suite_gym
>>> inner = PyToDMWrapper(suite_gym.load("CartPole-v1"))
>>> dm_env_wrapper.DmEnvWrapper(inner).reset().observation.shape
(4,)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
