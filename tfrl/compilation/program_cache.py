"""Keeps what XLA compiles, so that the next process need not compile it.

TensorFlow can read compiled programs from a directory and write new ones there. It uses
a program only if the hash of its source is that of the source that it was to compile.
But an error in this directory makes the call fail that compiles. So TensorFlow gets a
directory in its own memory, and this module copies programs between it and the disk
(`program_store`), as texts (`program_entries`): those of a `ProgramNames` before and
after the compilation, all others when the process traces a first function and when it
ends.

The source of a program contains the names of its functions. TensorFlow numbers them in
the order of their traces, so in another script the same program would have another
source. In the context of a `ProgramNames` the numbers depend on its label alone.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import contextvars
import hashlib
import itertools
import os
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from tfrl.compilation import program_entries, program_kinds, program_store

_MEMORY = "ram://tfrl-programs"
_VARIABLE = "TF_XLA_FLAGS"
_DIRECTORY = "--tf_xla_persistent_cache_directory"
_FLAGS = " ".join(
    [
        f"{_DIRECTORY}={_MEMORY}",
        # The text of a program is stored without its source.
        "--tf_xla_disable_strict_signature_checks=true",
    ]
)
_OTHERS = ""  # The group of the programs without a `ProgramNames`.


def find_root(environment: Mapping[str, str]) -> pathlib.Path:
    """Returns the folder of the programs, which may not exist yet.

    Args:
      environment: The variables of the environment.

    Raises:
      program_store.NoPlaceError: A process with these variables uses no cache.
    """
    flags = environment.get(_VARIABLE, "").strip()
    if _DIRECTORY in flags:
        raise program_store.NoPlaceError(f"{_VARIABLE} names a directory of its own")
    if flags and not flags.startswith("-"):
        raise program_store.NoPlaceError(
            f"{_VARIABLE} names a file; write the flags into the variable instead"
        )
    root = program_store.find_root(environment)
    if obstacle := program_store.obstacle(root):
        raise program_store.NoPlaceError(obstacle)
    return root


class ProgramNames:
    """Names for the functions of a program, which are the same in each process.

    The second one with a label, in the order of the first traces, has other names than
    the first one.
    """

    _counts: ClassVar[collections.Counter[str]] = collections.Counter()

    def __init__(self, label: str) -> None:
        """Chooses no names yet.

        Args:
          label: What the program does, such as the names of classes.
        """
        self._label = label
        self._group = ""
        self._numbers: Iterator[int] = iter(())
        self._has_traced = False

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Names the functions that are traced in this context.

        What is compiled in the context, after a trace, is kept for later processes.
        """
        if _names.get() is not None:  # They belong to a larger program.
            yield
            return
        token = _names.set(self)
        self._has_traced = False
        try:
            yield
        finally:
            _names.reset(token)
            if self._has_traced and _cache is not None:
                _cache.keep(self._group)

    def __reduce__(self) -> tuple[type[ProgramNames], tuple[str]]:
        return ProgramNames, (self._label,)  # A copy has names of its own.

    def next_number(self) -> int:
        """Returns the number of the next function, which no other function has."""
        if not self._group:
            count = self._counts[self._label]
            self._counts[self._label] += 1
            self._group = f"{self._label} {count}"
            # Far above the numbers that TensorFlow reaches, and far apart.
            digits = hashlib.sha256(self._group.encode()).hexdigest()[:10]
            self._numbers = itertools.count((1 << 60) + (int(digits, 16) << 20))
        if not self._has_traced:
            self._has_traced = True
            if _cache is not None:
                _cache.give(self._group)
        return next(self._numbers)


_names: contextvars.ContextVar[ProgramNames | None] = contextvars.ContextVar(
    "tfrl_program_names", default=None
)
_cache: _Cache | None = None


class _Cache:
    """The programs in TensorFlow's memory, and their files."""

    def __init__(self, root: pathlib.Path, tell: Callable[[str], None]) -> None:
        self._root = root
        self._tell = tell
        self._settings: tuple[str, ...] = ()
        self._flags: str | None = None
        self._has_given_others = False
        self._store: program_store.ProgramStore | None = None
        # The group of each program that TensorFlow was given, by the program's name.
        self._given: dict[str, str] = {}
        self._mutex = threading.RLock()

    def number(self, count: Callable[[], int]) -> int:
        """Returns the number of a new function.

        Args:
          count: TensorFlow's own numbering.
        """
        names = _names.get()
        if names is not None:
            return names.next_number()
        if not self._has_given_others:
            self._has_given_others = True
            self.give(_OTHERS)
        elif os.environ.get(program_kinds.XLA_FLAGS) != self._flags:
            self._take_back()
        return count()

    def give(self, group: str) -> None:
        """Gives TensorFlow the programs of a group, before it compiles them."""
        import tensorflow as tf

        # An error must not end the call for which the programs are.
        with self._mutex, contextlib.suppress(tf.errors.OpError):
            self.keep(_OTHERS)
            store = self._usable_store()
            for name, content in (store.read(group) if store else {}).items():
                with tf.io.gfile.GFile(f"{_MEMORY}/{name}", "wb") as file:
                    file.write(content)
                self._given[name] = group

    def keep(self, group: str) -> None:
        """Stores the programs that TensorFlow has compiled since, as of a group.

        Args:
          group: The group. Its programs that TensorFlow was given leave the memory,
            except for those of `_OTHERS`, which may still be compiled.
        """
        import tensorflow as tf

        # Programs of an unknown form, a `ValueError`, are not stored.
        with self._mutex, contextlib.suppress(tf.errors.OpError, ValueError):
            store = self._usable_store()
            for name in _names_in_memory():
                owner = self._given.get(name)
                path = f"{_MEMORY}/{name}"
                if owner is None and store is not None:
                    with tf.io.gfile.GFile(path, "rb") as file:
                        text = program_entries.to_text(file.read())
                    store.write(group, name, text)
                if owner is None or owner == group != _OTHERS:
                    self._given.pop(name, None)
                    tf.io.gfile.remove(path)

    def _usable_store(self) -> program_store.ProgramStore | None:
        """Returns the store; None if what programs depend on has changed."""
        settings = program_kinds.settings()
        if self._store is None:
            self._settings = settings
            self._flags = os.environ.get(program_kinds.XLA_FLAGS)
            kind = program_kinds.kind()
            self._store = program_store.ProgramStore(self._root, kind, self._tell)
        return self._store if settings == self._settings else None

    def _take_back(self) -> None:
        """Removes the programs that TensorFlow was given."""
        import tensorflow as tf

        with self._mutex:
            for name in _names_in_memory():
                if self._given.pop(name, None) is not None:
                    tf.io.gfile.remove(f"{_MEMORY}/{name}")


def _names_in_memory() -> list[str]:
    """Returns the names of the programs in memory, without unfinished ones."""
    import tensorflow as tf

    files = tf.io.gfile
    names = files.listdir(_MEMORY) if files.isdir(_MEMORY) else []
    return [name for name in names if name.endswith(".pb")]


@contextlib.contextmanager
def turned_on(tell: Callable[[str], None]) -> Iterator[None]:
    """Turns the cache on when TensorFlow has been imported in this context.

    TensorFlow's import finds the flags in the environment, where other programs that
    this process starts do not see them. If it has been used before, nothing is cached.

    Args:
      tell: Called with a line when files are deleted that do not belong in the cache.
    """
    global _cache
    from tfrl.compilation import internals  # Not at the top: it imports NumPy.

    try:
        root = find_root(os.environ)
    except program_store.NoPlaceError:
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = f"{before or ''} {_FLAGS}".strip()
    try:
        yield
        is_read = internals.read_xla_flags()
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
    cache = _Cache(root, tell)
    if is_read and internals.number_functions(cache.number):
        _cache = cache
        atexit.register(cache.keep, _OTHERS)
