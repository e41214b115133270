"""Functions of arrays that take little time at any size or at their first call.

Copying an array of many megabytes takes longer than a server may keep its clients
waiting. So `grown` reserves addresses for a longer array, and the system provides
memory for them as they are used.
"""

from __future__ import annotations

import numpy as np

_LARGE = 1 << 20  # Bytes.
_MOST = 1 << 28  # Bytes to reserve for a large array.


def grown(array: np.ndarray, size: int, reserved: int) -> np.ndarray:
    """Returns an array with more elements, which are 0.

    Nothing is copied as long as `size` is at most the number of elements reserved in an
    earlier call. Reserved elements that are not in use take no memory.

    Args:
      array: An array of one dimension.
      size: The new number of elements.
      reserved: The number of elements for which to reserve addresses.
    """
    owner = array if array.base is None else array.base
    if owner.size < size:
        try:
            owner = np.zeros(max(size, reserved), array.dtype)
        except MemoryError:  # The system may limit addresses.
            owner = np.zeros(size, array.dtype)
        owner[: array.size] = array
    return owner[:size]


def doubled(array: np.ndarray, size: int) -> np.ndarray:
    """Returns an array with at least `size` elements; new elements are 0.

    If there are too few elements, their number at least doubles, so that repeated calls
    take little time. Large arrays are copied only after they have grown a hundredfold.

    Args:
      array: An array of one dimension.
      size: The least number of elements.
    """
    if size <= array.size:
        return array
    size = max(size, 2 * array.size)
    is_large = size * array.itemsize > _LARGE
    reserved = _MOST // array.itemsize if is_large else 0
    return grown(array, size, reserved)


def distinct(values: np.ndarray) -> np.ndarray:
    """Returns the distinct numbers of an array of one dimension, in ascending order.

    The first call of `np.unique` imports a part of NumPy, which takes ten milliseconds.
    """
    values = np.sort(values)
    if values.size < 2:
        return values
    first = np.empty(values.size, bool)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]
