"""Shortens the import of TensorFlow by parts that few programs use.

TensorFlow and Keras import all of their parts at once, among them the names of
TensorFlow 1 and, for pictures of data sets, Matplotlib. `import tfrl` calls `install`;
if TensorFlow is imported later, the parts that match `_RARE` are made without running
their code, which runs when one of their names is first used. A release of TensorFlow
without these parts is imported as usual, and so is a TensorFlow that a program imports
before tfrl.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import importlib.machinery
import re
import sys
import threading
import types
from collections.abc import Iterator, Sequence

# `tf.compat.v1.train` and others, whose names TensorFlow 2 does not need; other copies
# of all names in `tf.compat`; and what is for tables, phones and TPUs alone.
_RARE = re.compile(
    r"keras\.(_tf_keras\.keras\.|src\.)?visualization"
    r"|tensorflow\._api\.v2\.compat\.(v1\.\w+|v2\.compat)"
    r"|tensorflow\._api\.v2\.(compat\.v2\.)?(__internal__\.)?(feature_column|lite|tpu)"
)
# Packages of hundreds of modules.
_LARGE = ("tensorflow", "keras", "tensorflow_probability")


def install() -> None:
    """Shortens later imports of TensorFlow; a second call does nothing."""
    if "tensorflow" not in sys.modules and _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Lets Python collect no garbage in this context, such as an import.

    An import makes objects that stay. Python would search all of them for garbage again
    and again, which takes a fifth of the time of a large import.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Unread(types.ModuleType):
    """A module whose code runs when a name in it is first used."""

    def __getattr__(self, name: str) -> object:
        # Tools look for such names in every module, and they are set by the import
        # system or not at all.
        if not name.startswith("__") or name == "__all__":
            _read(self)
            if type(self) is not _Unread or name in self.__dict__:
                return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        _read(self)
        return list(self.__dict__)


_READING = threading.RLock()
_read_now: set[str] = set()


def _read(module: types.ModuleType) -> None:
    """Runs the code of an `_Unread` module, unless it runs already in this thread."""
    with _READING:
        name, loader = module.__name__, module.__loader__
        if type(module) is not _Unread or name in _read_now:
            return
        assert isinstance(loader, _LateLoader)
        _read_now.add(name)
        try:
            loader.run(module)
            # Other threads wait until now.
            module.__class__ = types.ModuleType  # type: ignore[assignment]
        finally:
            _read_now.remove(name)


class _LateLoader(importlib.abc.Loader):
    """Makes an `_Unread` module for another loader."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(
        self, spec: importlib.machinery.ModuleSpec
    ) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__class__ = _Unread

    def run(self, module: types.ModuleType) -> None:
        """Runs the module's code."""
        self._loader.exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `_RARE` and `_LARGE` through the other finders."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module with another loader, or None."""
        is_rare = _RARE.fullmatch(fullname)
        if not (is_rare or fullname in _LARGE):
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in after)
        spec = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            return spec
        if is_rare:
            spec.loader = _LateLoader(spec.loader)
            return spec
        load = spec.loader.exec_module

        def load_at_once(module: types.ModuleType) -> None:
            with without_collections():
                load(module)
                if not gc.get_freeze_count():
                    # All objects become old: they are not searched as new ones.
                    gc.freeze()
                    gc.unfreeze()

        spec.loader.exec_module = load_at_once  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()
