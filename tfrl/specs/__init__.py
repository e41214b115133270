"""Specs: the shapes, dtypes and bounds of observations, actions and other data.

`array_spec` describes NumPy arrays and only needs NumPy; `tensor_spec` describes
TensorFlow tensors and subclasses `tf.TensorSpec`. `gym_spaces` and `dm_env_specs`
translate from and to the specs of those libraries. `EnvironmentSpec` gathers the four
specs of an environment. Nothing here imports TensorFlow before `tensor_spec`, or
a name from it, is used.

>>> import numpy as np
>>> from tfrl.specs import BoundedArraySpec, array_spec
>>> spec = {"position": BoundedArraySpec((2,), np.float32, -1.0, 1.0)}
>>> array_spec.check_arrays_nest({"position": np.zeros(2, np.float32)}, spec)
True
>>> array_spec.check_arrays_nest({"position": np.full(2, 3, np.float32)}, spec)
False
>>> from tfrl.specs import tensor_spec
>>> tensor_spec.from_spec(spec)["position"].dtype
tf.float32
>>> tensor_spec.sample_spec_nest(
...     tensor_spec.from_spec(spec), seed=1, outer_dims=(4,)
... )["position"].shape
TensorShape([4, 2])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
