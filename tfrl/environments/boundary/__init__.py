"""Checks and conversions of the values that cross between Python and TensorFlow.

>>> import numpy as np
>>> from tfrl.environments.boundary import action_arrays
>>> from tfrl.specs import BoundedArraySpec
>>> spec = BoundedArraySpec((), np.int32, 0, 3)
>>> action_arrays.flatten(np.int64(2), spec)
[array(2, dtype=int32)]
>>> action_arrays.flatten(np.float32(2), spec)
Traceback (most recent call last):
TypeError: action: got dtype float32, expected int32; cast the action.
"""
