"""Keeps the old path of a module that has moved, for one release."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def moved(old: str, new: str) -> Callable[[str], Any]:
    """Returns a module `__getattr__` that looks names up in the module's new place.

    The module at the old path holds nothing but

        __getattr__ = moved("tfrl.utils.old_name", "tfrl.losses.new_name")

    The first lookup of each name raises a DeprecationWarning that points at the line
    that asked for it and gives the name's new path. The new module is imported then,
    not before.

    Args:
      old: The full name of the module that was moved.
      new: The full name of the module that holds its contents now.
    """
    warned: set[str] = set()

    def __getattr__(name: str) -> Any:
        # Dunder names are asked for by the import system, by inspect and by doctest.
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(new), name)
        except AttributeError:
            raise AttributeError(
                f"module {old!r} has moved to {new!r}, which has no attribute {name!r}"
            ) from None
        if name not in warned:
            warned.add(name)
            warnings.warn(
                f"{old}.{name} has moved to {new}.{name}; the old path goes with the "
                "next release.",
                DeprecationWarning,
                stacklevel=2,
            )
        return value

    return __getattr__
