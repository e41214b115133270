"""Networks: Keras layers with specs, the parts of policies and agents.

>>> import tensorflow as tf
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> network = QNetwork(
...     tf.TensorSpec([4], tf.float32),
...     BoundedTensorSpec([], tf.int64, 0, 1),
...     fc_layer_params=(32,),
... )
>>> q_values, state = network(tf.zeros([7, 4]))
>>> q_values.shape, state
(TensorShape([7, 2]), ())
>>> len(network.copy().create_variables().shape)  # weights of its own
1
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
