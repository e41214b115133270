"""Checksums of files.

>>> import io
>>> from tfrl.system import checksum
>>> checksum.crc32(io.BytesIO(b"abcd")) == checksum.crc32(io.BytesIO(b"abcdef"), 4)
True
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

_CHUNK = 4 << 20  # Bytes.


def crc32(file: BinaryIO, size: int | None = None) -> int:
    """Returns the CRC-32 of the rest of an open file.

    Args:
      file: The file, from which this function reads.
      size: The number of bytes to read; None for all.
    """
    value = 0
    while chunk := file.read(_CHUNK if size is None else min(_CHUNK, size)):
        value = zlib.crc32(chunk, value)
        if size is not None:
            size -= len(chunk)
    return value
