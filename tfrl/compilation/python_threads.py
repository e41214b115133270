"""Python called from TensorFlow's threads, without starting anew at each call."""

from __future__ import annotations

import ctypes
import threading

_kept = threading.local()


def keep_thread_state() -> None:
    """Keeps this thread's Python state until the process ends; call it at each entry.

    CPython makes a state for a foreign thread that calls into it, and frees it when the
    call returns. Making one takes several times as long as a step of a small
    environment. Held once more, as here, it stays for the next call. A thread that has
    a state of its own, such as the main one, is not changed by it.
    """
    if not hasattr(_kept, "state"):
        # Never released, on purpose. The lock itself is given back as always.
        _kept.state = ctypes.pythonapi.PyGILState_Ensure()
