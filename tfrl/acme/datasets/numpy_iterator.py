"""`NumpyIterator`: a dataset's elements as arrays, without copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tree


class NumpyIterator(Iterator[Any]):
    """Iterates over a dataset; the arrays share the tensors' memory, and are read-only.

    >>> import tensorflow as tf
    >>> [int(x) for x in NumpyIterator(tf.data.Dataset.range(3))]
    [0, 1, 2]
    """

    def __init__(self, dataset: Iterable[Any]):
        """Begins with the first element.

        Args:
          dataset: A dataset of nests of tensors.
        """
        self._iterator = iter(dataset)

    def __next__(self) -> Any:
        """Returns the next element, a nest of arrays."""
        return tree.map_structure(
            lambda leaf: np.asarray(memoryview(leaf)), next(self._iterator)
        )

    def next(self) -> Any:
        """Returns the next element, a nest of arrays."""
        return next(self)
