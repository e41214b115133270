"""Temporary folders of groups of processes, for files that killed processes leave.

AutoGraph writes a file for each function that it converts, and a killed process leaves
these files in the system's temporary folder.

>>> import os
>>> from tfrl.system import temporary_folders
>>> with temporary_folders.make() as folder:
...     os.path.isdir(folder)
True
>>> os.path.exists(folder)
False
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from tfrl.system import locked_directories

_PREFIX = "tfrl-processes-"


@contextlib.contextmanager
def make() -> Iterator[str]:
    """Makes a folder, and deletes it when the context ends.

    Folders whose makers were killed are deleted, too.

    Yields:
      The path of the folder.
    """
    locked_directories.remove_temporary(_PREFIX)
    folder, lock = locked_directories.make_temporary(_PREFIX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            lock.release()


def use(folder: str) -> None:
    """Puts the temporary files of this process, and of its children, into a folder."""
    tempfile.tempdir = os.environ["TMPDIR"] = folder
