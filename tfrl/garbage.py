"""Saves the time in which Python searches lasting objects for garbage.

An import, or the trace of a large graph, makes many objects and little garbage. Python
would search all of them again and again, which takes a fifth of the time.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Lets Python collect no garbage in this context, which must end soon."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def permanent() -> Iterator[None]:
    """As `uncollected`; what there is at the end is not searched later either.

    This holds until `gc.unfreeze()`. Objects without references are freed as always;
    only cycles of objects that were made before the end of the context are not.
    """
    with uncollected():
        yield
        gc.freeze()
