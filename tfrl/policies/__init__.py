"""Policies: from a time step to an action.

A `TFPolicy` works on batches of tensors, eagerly and inside a `tf.function`; a
`PyPolicy` works on NumPy arrays; `PyTFEagerPolicy` makes the second of the first.
`PolicySaver` writes a policy as a SavedModel that acts with TensorFlow alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
