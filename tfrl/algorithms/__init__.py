"""Algorithms: each is an agent with its networks, replay, loop and settings.

Their classes are names of `tfrl` itself, such as `tfrl.PPO`.

>>> import numpy as np
>>> from tfrl.algorithms import spaces
>>> from tfrl.specs import array_spec
>>> observation = array_spec.ArraySpec((4,), np.float32)
>>> action = array_spec.BoundedArraySpec((), np.int64, 0, 1)
>>> spaces.describe(observation, action)
'observation [4]: as it is; action: one of 2'
"""
