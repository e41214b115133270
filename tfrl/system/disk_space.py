"""Recognises errors that mean that there is no space left on the disk."""

from __future__ import annotations

import errno

# A disk is full, a quota is used up, or a file would exceed the limit on its size.
CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_used_up(error: OSError) -> bool:
    """Whether the error means that there is no space left."""
    return error.errno in CODES
