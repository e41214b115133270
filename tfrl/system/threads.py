"""Limits TensorFlow's threads in a program that trains small networks.

Handing an operation of a small network to another thread, or starting one of oneDNN's
kernels, takes longer than computing it.
"""

from __future__ import annotations

import os

# Whether the user has chosen the kernels.
HAS_USERS_KERNELS = "TF_ENABLE_ONEDNN_OPTS" in os.environ


def set_up() -> None:
    """Sets TensorFlow's variables; set them yourself for large networks."""
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
