"""Finds checkpoints by the names of their files. Nothing here imports TensorFlow."""

from __future__ import annotations

import os
import re

NAME = "ckpt"


def number_of(path: str) -> int:
    """Returns the N of a prefix `directory/ckpt-N`."""
    return int(path.rpartition("-")[2])


def is_in(directory: str | os.PathLike[str], path: str) -> bool:
    """Whether a path is a prefix `directory/ckpt-N`."""
    name = os.path.basename(path)
    is_name = re.fullmatch(rf"{NAME}-\d+", name) is not None
    return is_name and os.path.join(directory, name) == path


def newest_first(directory: str | os.PathLike[str]) -> list[str]:
    """Returns the prefixes `directory/ckpt-N` that have any file, newest first.

    There is none without the directory, which a run may have lost.
    """
    numbers = set()
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        match = re.match(rf"{NAME}-(\d+)\.(index|data-\d+-of-\d+)$", name)
        if match:
            numbers.add(int(match[1]))
    return [
        os.path.join(directory, f"{NAME}-{n}") for n in sorted(numbers, reverse=True)
    ]
