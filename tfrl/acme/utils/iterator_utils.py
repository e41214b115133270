"""Functions of iterators."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any


def unzip_iterators(
    zipped_iterators: Iterator[Sequence[Any]], num_sub_iterators: int
) -> list[Iterator[Any]]:
    """Returns an iterator for each position of the elements of an iterator.

    >>> first, second = unzip_iterators(zip("abc", [1, 2, 3]), 2)
    >>> list(first), list(second)
    (['a', 'b', 'c'], [1, 2, 3])

    Args:
      zipped_iterators: An iterator of sequences.
      num_sub_iterators: The length of the sequences.
    """
    copies = itertools.tee(zipped_iterators, num_sub_iterators)
    return [map(operator.itemgetter(i), each) for i, each in enumerate(copies)]
