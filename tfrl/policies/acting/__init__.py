"""How a policy acts: checks of its input and output, traces of eager calls.

`TFPolicy` and the policies on arrays use it.

>>> import tensorflow as tf
>>> from tfrl.policies.acting import validation
>>> validation.check_action(tf.constant([1]), tf.TensorSpec([], tf.int32), "MyPolicy")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
