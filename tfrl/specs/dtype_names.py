"""Names of NumPy's and ml_dtypes' numeric dtypes, for messages and files."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_PLAIN = {np.dtype(code).name: np.dtype(code) for code in "?bhilqBHILQefdgFDG"}


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: Any) -> str:
    """Returns the name of a numeric dtype, for `dtype_from_name`.

    Raises:
      ValueError: If the values of the dtype are not numbers of a fixed size.
    """
    dtype = np.dtype(dtype)
    is_plain = dtype.kind in "biufc" and dtype.isnative
    # NumPy reports the types of ml_dtypes as raw bytes or as floats.
    is_extension = dtype.isbuiltin == 2 and dtype.itemsize in (1, 2)
    if not (is_plain or is_extension):
        raise ValueError(
            f"Values of dtype {dtype} cannot be replayed, only numbers and booleans of "
            "a fixed size in the machine's byte order. Encode text as uint8."
        )
    return dtype.name


@functools.lru_cache(maxsize=256)
def dtype_from_name(name: str) -> np.dtype:
    """Returns the dtype whose name `dtype_name` returned.

    Raises:
      ValueError: If no dtype of numbers has this name.
    """
    # np.dtype(name) would parse untrusted text.
    dtype = _PLAIN.get(name)
    if dtype is None:
        # TensorFlow installs ml_dtypes and uses its dtypes, such as bfloat16.
        import ml_dtypes

        kind = getattr(ml_dtypes, name, None)
        if not isinstance(kind, type):
            raise ValueError(f"There is no dtype {name!r}.")
        dtype = np.dtype(kind)
        if dtype_name(dtype) != name:
            raise ValueError(f"There is no dtype {name!r}; is it {dtype.name!r}?")
    return dtype
