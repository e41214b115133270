"""Shared type aliases, for annotations; importing them needs no TensorFlow.

>>> from tfrl.typing import types
>>> def first(nest: types.NestedTensor) -> types.Tensor:
...     return nest[0]
>>> sorted(first.__annotations__)
['nest', 'return']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
