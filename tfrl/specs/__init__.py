"""Specs: the shape, dtype and bounds of everything that flows.

`array_spec` describes NumPy arrays and needs NumPy alone; `tensor_spec` describes
TensorFlow tensors and subclasses `tf.TensorSpec`. `gym_spaces` and `dm_env_specs`
translate from and to the specs of those libraries, and `environment_spec` gathers the
four specs of an environment. Nothing here imports TensorFlow before `tensor_spec`, or
a name from it, is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
