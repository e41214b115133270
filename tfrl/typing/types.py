"""Type aliases that annotations across the library share.

Classes are named by strings, so that importing this module imports neither TensorFlow
nor any other room of the library. TensorFlow ships no types, so a checker sees its
classes as `Any`; the names are for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

import numpy as np

if TYPE_CHECKING:
    import gymnasium
    import keras
    import tensorflow as tf
    import tensorflow_probability as tfp

Tnest = TypeVar("Tnest")
Trecursive = TypeVar("Trecursive")
Nested = Union[Tnest, Iterable[Trecursive], Mapping[str, Trecursive]]  # noqa: UP007

Tensor = Union["tf.Tensor", "tf.SparseTensor", "tf.RaggedTensor"]
Array = Union[np.ndarray, np.generic, int, float, str, bool, "tf.Tensor"]
TensorOrArray = Union[Tensor, Array]
Distribution = Union["tfp.distributions.Distribution"]
