"""Imports large packages inside of contexts that other modules choose."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence

_Context = Callable[[], contextlib.AbstractContextManager[None]]


def around(package: str, context: _Context) -> None:
    """Lets a later import of a package happen in a context.

    Args:
      package: A package without a dot in its name. If it is imported already, this
        function does nothing.
      context: Returns the context. It is inside of those that are given later; one
        that has been given before is not entered twice.
    """
    if package in sys.modules:
        return
    contexts = _FINDER.contexts.setdefault(package, [])
    if context not in contexts:
        contexts.append(context)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds packages through the other finders, and loads them in their contexts."""

    def __init__(self) -> None:
        self.contexts: dict[str, list[_Context]] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a package with another loader, or None."""
        if fullname not in self.contexts:
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in after)
        spec = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_in_contexts(module: types.ModuleType) -> None:
            with contextlib.ExitStack() as stack:
                for context in reversed(self.contexts.pop(fullname, [])):
                    stack.enter_context(context())
                load(module)

        spec.loader.exec_module = load_in_contexts  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()
