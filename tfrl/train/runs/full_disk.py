"""Explains the errors of a full disk."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from tfrl.replay_service import errors
from tfrl.system import files


class FullDiskError(OSError):
    """There is no space left for the files of a run."""


@contextlib.contextmanager
def explaining() -> Iterator[None]:
    """Raises a `FullDiskError` instead of the many errors of a full disk.

    Python raises an OSError, which may not name the file, TensorFlow one of several
    kinds of `tf.errors.OpError`, and a replay server that cannot write its checkpoint
    another error.
    """
    try:
        yield
    except Exception as error:
        what = _describe(error)
        if what is None or isinstance(error, FullDiskError):
            raise
        raise FullDiskError(
            f"disk: got {what!r}, expected space for checkpoints, policies and logs; "
            "free some, then run the same again: it continues from the last checkpoint."
        ) from error


def _describe(error: Any) -> str | None:
    """Returns the text of a full disk's error; None for other errors."""
    if isinstance(error, OSError):
        if error.errno is None or not files.is_disk_full(error):
            return None
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{os.strerror(error.errno)}"
    if isinstance(error, errors.ResourceExhaustedError):
        text = str(error)
        # The text has the directory, but not the advice.
        return text.partition(". ")[0] if _find(text) else None
    # Without TensorFlow, none of its errors can have been raised.
    tensorflow: Any = sys.modules.get("tensorflow")
    if tensorflow is None or not isinstance(error, tensorflow.errors.OpError):
        return None
    return _find(error.message)


def _find(message: str) -> str | None:
    """Returns the part of a message about a full disk, or None."""
    for code in files.DISK_FULL:
        text = os.strerror(code)
        found = re.search(rf"(\S+); {re.escape(text)}", message)
        if found:
            return f"{found[1]}: {text}"
        if text in message:
            return text
    return None
