"""Lets Python collect no garbage while large packages are imported.

An import makes objects that stay. Python would search all of them for garbage again and
again, which takes a fifth of the time of a large import. `import tfrl` calls `install`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence

# Packages of hundreds of modules.
_LARGE = ("tensorflow", "keras", "tensorflow_probability")


def install() -> None:
    """Shortens later imports of TensorFlow; a second call does nothing."""
    if "tensorflow" not in sys.modules and _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Lets Python collect no garbage in this context, such as an import."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `_LARGE` packages through the other finders."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a package with another loader, or None."""
        if fullname not in _LARGE:
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in after)
        spec = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_at_once(module: types.ModuleType) -> None:
            with without_collections():
                load(module)

        spec.loader.exec_module = load_at_once  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()
