"""Chooses TensorFlow's threads and kernels in a program that trains.

Handing an operation of a small network to another thread, or starting one of oneDNN's
kernels, takes longer than computing it.
"""

from __future__ import annotations

import os

KERNELS = "TF_ENABLE_ONEDNN_OPTS"
INSIDE_OPERATIONS = "TF_NUM_INTRAOP_THREADS"  # "0" is one for each processor.
_FOR_SMALL_NETWORKS = {
    "TF_NUM_INTEROP_THREADS": "1",
    INSIDE_OPERATIONS: "1",
    KERNELS: "0",
}
# The variables that this process has set.
_chosen_here: set[str] = set()


def set_up() -> None:
    """Sets TensorFlow's variables for small networks, unless the user has set them."""
    for name, value in _FOR_SMALL_NETWORKS.items():
        choose(name, value)


def choose(name: str, value: str) -> None:
    """Sets a variable, unless the user, or the process that started this, has set it.

    TensorFlow reads it when it makes its devices.
    """
    if name in _chosen_here or name not in os.environ:
        os.environ[name] = value
        _chosen_here.add(name)


def hand_down(share: int | None) -> None:
    """Leaves the choice of what this process has set to the processes that it starts.

    Args:
      share: The processors of each one, if several run at the same time, or None.
    """
    for name in _chosen_here:
        os.environ.pop(name, None)
    if share is not None:
        choose(INSIDE_OPERATIONS, str(share))
