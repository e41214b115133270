"""Keeps the Python state of TensorFlow's threads between their calls to Python."""

from __future__ import annotations

import ctypes
import threading

_kept = threading.local()


def keep_thread_state() -> None:
    """Keeps this thread's Python state until the process ends; call it at each entry.

    CPython makes a state for a foreign thread that calls into it, and frees it when the
    call returns. Making one takes several times as long as a step of a small
    environment. This function takes a second reference to the state, so that the state
    stays for the next call. It does not change threads that have their own state,
    such as the main thread.
    """
    if not hasattr(_kept, "state"):
        # Never released, on purpose. The interpreter lock is released as usual.
        _kept.state = ctypes.pythonapi.PyGILState_Ensure()
