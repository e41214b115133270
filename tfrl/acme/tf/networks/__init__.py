"""Networks, heads and torsos, built from Keras layers where Acme has Sonnet's.

`Sequential` and `DeepRNN`, which are the same, return their output and their state.

>>> import tensorflow as tf
>>> from tfrl.acme.tf import networks
>>> policy = networks.Sequential(
...     [
...         networks.LayerNormMLP([32, 32], activate_final=True),
...         networks.MultivariateNormalDiagHead(2),
...         networks.StochasticModeHead(),
...     ]
... )
>>> actions, state = policy(tf.zeros([7, 3]))
>>> actions.shape, state
(TensorShape([7, 2]), ())
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
