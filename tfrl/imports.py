"""What an import of tfrl does beyond Python's: lazy names, reasons, and contexts.

`absent_names.json` has the names of TF-Agents and Acme that tfrl lacks, with what to
write instead. A package says so by `attach_stub`. One finder, which `tfrl.startup` puts
first on `sys.meta_path`, says so for imports, and for the other modules. It also
imports large packages in contexts that `tfrl.startup` chooses.

The import system shows no text of a module's `__getattr__` for `from module import
name`, and it asks finders for `module.name` only if `module` has a `__path__`. So a
plain module that lacks names of the file gets an empty `__path__`, in which nothing is
found. It gets this and a `__getattr__` when it is imported, since a `__getattr__` in
its text would hide misspelt names from type checkers.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import importlib.abc
import importlib.machinery
import pathlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import lazy_loader

from tfrl import garbage

_Context = Callable[[], contextlib.AbstractContextManager[None]]
_FILE = pathlib.Path(__file__).with_name("absent_names.json")
# Names that packages exported until the last minor release: by the full old name, the
# full new one and the release without the old one. docs/changes.md has the policy.
RENAMED: dict[str, tuple[str, str]] = {}


class Row(NamedTuple):
    """Names that tfrl lacks, a row of a table of the guide.

    Attributes:
      library: The library that has them.
      section: The heading of the table.
      module: The module that would have them here, by its full name.
      names: The names in it, also `Class.attribute`.
      instead: What to write instead, in Markdown.
      moved: The full names here of the same things, in the order of `names`; or empty.
    """

    library: str
    section: str
    module: str
    names: list[str]
    instead: str
    moved: list[str]


@functools.cache
def absent_rows() -> list[Row]:
    """Returns the rows of the file."""
    import json  # Not at the top: `import tfrl` itself does not read the file.

    return [
        Row(
            library=table["library"],
            section=table["section"],
            module=".".join(filter(None, (table["package"], row["module"]))),
            names=row["names"],
            instead=row.get("instead") or ", ".join(f"`{x}`" for x in row["moved"]),
            moved=row.get("moved", []),
        )
        for table in json.loads(_FILE.read_text(encoding="utf-8"))
        for row in table["rows"]
    ]


@functools.cache
def _absent() -> dict[str, dict[str, str]]:
    """Returns, by the modules and then by the names, the texts of the errors."""
    texts: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for row in absent_rows():
        instead = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row.instead).replace("`", "")
        text = f"{row.library} has it, tfrl does not; instead: {instead}."
        texts[row.module].update(dict.fromkeys(row.names, text))
    return dict(texts)


def explanation(full_name: str) -> str | None:
    """Returns the text that explains the absence of a name; None for other names.

    The classes of algorithms, which tfrl itself exports, are looked for beside agents.
    """
    module, _, name = full_name.rpartition(".")
    if (
        module == "tfrl.agents"
        and name[:1].isupper()
        and name in sys.modules["tfrl"].__all__  # An import would be a circle.
    ):
        return (
            f"use tfrl.{name}, the whole algorithm, or the class of an agent alone, "
            "with TF-Agents' interface, such as DqnAgent or PPOAgent."
        )
    return _absent().get(module, {}).get(name)


def attach_stub(
    package: str, filename: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Calls `lazy_loader.attach_stub`; its AttributeErrors then explain absent names.

    A name in `RENAMED` leads to the new one, with a warning.

    Args:
      package: The package, its `__name__`.
      filename: The package's `__file__`; the stub is next to this file.
    """
    load, names, public = lazy_loader.attach_stub(package, filename)

    def attribute(name: str) -> Any:
        _refuse_absent(package, name)
        with garbage.uncollected():
            if f"{package}.{name}" in RENAMED:
                return _renamed(f"{package}.{name}")
            return load(name)

    return attribute, names, public


def _renamed(old: str) -> Any:
    """Returns what a name in `RENAMED` stands for."""
    new, gone = RENAMED[old]
    warn_renamed(old, new, gone, stacklevel=4)
    module, _, name = new.rpartition(".")
    return getattr(importlib.import_module(module), name)


@functools.cache
def warn_renamed(old: str, new: str, gone: str, stacklevel: int = 3) -> None:
    """Warns, once in a process, that a name or an argument has another name now.

    Args:
      old: What the caller wrote, such as "tfrl.agents.OldAgent".
      new: What to write instead.
      gone: The release that will not know the old one, such as "0.3".
      stacklevel: As of `warnings.warn`; 3 is the caller of the caller.
    """
    text = f"{old} is called {new} now, and tfrl {gone} will not know the old name."
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)


def _refuse_absent(module: str, name: str) -> None:
    if text := explanation(f"{module}.{name}"):
        raise AttributeError(f"{module}.{name}: {text}")


@contextlib.contextmanager
def hidden(name: str) -> Iterator[None]:
    """Makes imports of a package fail in the context, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # As Python's manual says.
    try:
        yield
    finally:
        sys.modules.pop(name, None)


class _Absent:
    """An attribute of a class, which raises an AttributeError that explains it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        raise AttributeError(self._text)


def _explain(module: ModuleType) -> None:
    """Lets a module explain what it lacks, and its classes what these lack."""
    place = module.__name__
    for name, text in _absent()[place].items():
        owner, _, member = name.rpartition(".")
        if owner:
            absent = _Absent(f"{place}.{name}: {text}")
            setattr(getattr(module, owner), member, absent)
    if hasattr(module, "__path__"):
        return  # A package, which has `attach_stub`.

    def attribute(name: str) -> Any:
        _refuse_absent(place, name)
        raise AttributeError(f"module {place!r} has no attribute {name!r}")

    module.__getattr__ = attribute  # type: ignore[method-assign]
    module.__path__ = []


class _Finder(importlib.abc.MetaPathFinder):
    """Raises for absent names; finds some modules through the other finders."""

    def __init__(self) -> None:
        self.contexts: dict[str, tuple[_Context, ...]] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module that is imported otherwise than usual, or None.

        Raises:
          ImportError: tfrl does not have the name, which need not be a module's: `from
            tfrl.agents import DQN`, too, looks for a module `tfrl.agents.DQN`.
        """
        is_ours = fullname.startswith("tfrl.")
        if is_ours and (text := explanation(fullname)):
            raise ImportError(f"{fullname}: {text}", name=fullname)
        lacks_names = is_ours and fullname in _absent()
        if not lacks_names and fullname not in self.contexts:
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in after)
        spec = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            return spec
        loader = copy.copy(spec.loader)  # A finder may give it to other modules, too.
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with contextlib.ExitStack() as stack:
                for context in self.contexts.pop(fullname, ()):
                    stack.enter_context(context())
                execute(module)
            if lacks_names:
                _explain(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        spec.loader = loader
        return spec


_FINDER = _Finder()


def install() -> None:
    """Puts the finder on `sys.meta_path`, first; a second call does nothing."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def around(package: str, *contexts: _Context) -> None:
    """Lets a later import of a package happen in contexts.

    Args:
      package: A package without a dot in its name. If it is imported already, this
        function does nothing.
      *contexts: Functions that return the contexts, the outermost first.
    """
    if package not in sys.modules:
        _FINDER.contexts[package] = contexts
