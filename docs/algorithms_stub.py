"""Writes the stub of tfrl.algorithms, by which editors complete the settings' names.

    python docs/algorithms_stub.py

It reads the dataclasses of the settings. A test compares the stub with them.
"""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_STUB = _ROOT / "tfrl" / "algorithms" / "__init__.pyi"
_HEAD = '''\
"""`python docs/algorithms_stub.py` writes this file from the dataclasses."""

import collections.abc
import pathlib
import typing

import tfrl.agents

'''
# The packages of types. `lazy_loader` allows no `from typing import Any` in a stub.
_PACKAGES = {
    "Any": "typing",
    "Callable": "collections.abc",
    "Mapping": "collections.abc",
    "agents": "tfrl",
}
# Lists serve for tuples.
_TYPES = {
    "tuple[int, ...]": "collections.abc.Sequence[int]",
    "tuple[tuple[int, int, int], ...]": (
        "collections.abc.Sequence[tuple[int, int, int]]"
    ),
}


def stub() -> str:
    """Returns the stub: each algorithm's class, with its settings as keywords."""
    from tfrl.algorithms import registry

    kinds = [registry.find(name) for name in registry.CLASSES]
    imported = {(kind.__module__, kind.__name__) for kind in kinds}
    imported |= {(kind.Settings.__module__, kind.Settings.__name__) for kind in kinds}
    lines = [
        f"from .{module.rpartition('.')[2]} import {name} as _{name}"
        for module, name in sorted(imported, key=_order)
    ]
    classes = [line for kind in kinds for line in _class(kind)]
    return _HEAD + "\n".join([*lines, "", *classes])


def _order(pair: tuple[str, str]) -> tuple[Any, ...]:
    """Returns the key of an import, by which Ruff sorts: capitals alone come first."""
    module, name = pair
    return module, not name.isupper(), name


def _class(kind: Any) -> Iterator[str]:
    """Yields the lines of a class."""
    name, settings = kind.__name__, kind.Settings.__name__
    yield f"class {name}(_{name}):"
    text = inspect.getdoc(kind) or ""
    end = '\n"""' if "\n" in text else '"""'
    yield textwrap.indent(f'"""{text}{end}\n', " " * 4)
    yield f"    Settings: typing.ClassVar[type[_{settings}]] = ..."
    yield f"    settings: _{settings}\n"
    yield "    def __init__("
    for each in inspect.signature(kind.__init__).parameters.values():
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            yield from _parameter(each)
    for field in dataclasses.fields(kind.Settings):
        yield f"        {field.name}: {_TYPES.get(str(field.type), field.type)} = ...,"
    yield "    ) -> None: ...\n"


def _parameter(each: inspect.Parameter) -> Iterator[str]:
    """Yields the lines of a parameter that all algorithms have."""
    if each.default is inspect.Parameter.empty:
        yield f"        {each.name},"
        return
    names = "|".join(_PACKAGES)
    annotation = re.sub(
        rf"\b({names})\b",
        lambda found: f"{_PACKAGES[found[0]]}.{found[0]}",
        str(each.annotation),
    )
    yield f"        {each.name}: {annotation} = ...,"
    if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
        yield "        *,"


if __name__ == "__main__":
    sys.path.insert(0, str(_ROOT))
    _STUB.write_text(stub(), encoding="utf-8")
