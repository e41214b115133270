"""Writes api.md, the index of the API, from the packages' stubs and docstrings.

    python docs/tools/api_index.py

It imports nothing of tfrl. A test compares api.md with the index.
"""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
_PAGE = ROOT / "docs" / "api.md"
_HEAD = """\
# Index of the API

Import a name from its package, `from tfrl.agents import DqnAgent`, or from the module
that defines it, as in TF-Agents, `from tfrl.agents.dqn import dqn_agent`. The
docstrings have the arguments, shapes, dtypes and errors, and
[changes](changes.md#what-is-stable) says which names stay:

```python
import inspect
from tfrl.networks import default_preprocessing

print(inspect.getdoc(default_preprocessing).splitlines()[0])
```

`python docs/tools/api_index.py` writes this page from the docstrings.
"""


def index() -> str:
    """Returns the page: a table for each package, in the order of their names."""
    return "\n".join([_HEAD, *map(_section, stubs())])


def stubs() -> list[pathlib.Path]:
    """Returns the stubs of the public packages, in the order of their names."""
    return sorted((ROOT / "tfrl").rglob("__init__.pyi"), key=lambda path: path.parts)


def package_of(stub: pathlib.Path) -> str:
    """Returns the name of a stub's package."""
    return ".".join(stub.relative_to(ROOT).parent.parts)


def _section(stub: pathlib.Path) -> str:
    names = exports(stub)[1]
    rows = [
        f"| `{name}` | {summary(origin(source, name)[1])} |"
        for source, name in sorted(names, key=lambda pair: pair[1].lower())
    ]
    for source, inside in further_modules(stub):
        listed = ", ".join(f"`{name}`" for name in inside)
        rows.append(f"| `{source.stem}`: {listed} | {summary(tree(source))} |")
    lines = [
        f"## `{package_of(stub)}`\n",
        f"{summary(tree(stub.with_suffix('.py')))}\n",
    ]
    if rows:
        lines += ["| | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def exports(stub: pathlib.Path) -> tuple[list[str], list[tuple[pathlib.Path, str]]]:
    """Returns the modules of a stub, and its other names with their sources."""
    modules, names = [], []
    for node in tree(stub).body:
        if isinstance(node, ast.ImportFrom) and node.module is None:
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            source = module_file(stub.parent.joinpath(*node.module.split(".")))
            # Private ones are the bases of the classes in a stub.
            names += [
                (source, alias.name)
                for alias in node.names
                if not (alias.asname or "").startswith("_")
            ]
    return modules, names


def further_modules(stub: pathlib.Path) -> Iterator[tuple[pathlib.Path, list[str]]]:
    """Yields the public modules with names that their package does not export."""
    modules, names = exports(stub)
    exported = {name for _, name in names}
    for module in sorted(modules):
        source = stub.parent / f"{module}.py"
        if source.exists():
            inside = [name for name in public(source) if name not in exported]
            if inside:
                yield source, inside


@functools.cache
def origin(source: pathlib.Path, name: str) -> tuple[pathlib.Path, ast.AST | None]:
    """Returns where a name of `source` is defined, and its class or function."""
    for node in tree(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return source, node
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module:
                    parts = node.module.split(".")
                    base = source.parent if node.level else ROOT
                    imported = module_file(base.joinpath(*parts))
                    if imported.exists():
                        return origin(imported, alias.name)
    return source, None


def public(source: pathlib.Path) -> Iterator[str]:
    """Yields the public classes and functions that a module defines."""
    for node in tree(source).body:
        if isinstance(
            node, ast.ClassDef | ast.FunctionDef
        ) and not node.name.startswith("_"):
            yield node.name


def module_file(path: pathlib.Path) -> pathlib.Path:
    """Returns the file of a module, or the stub of a package."""
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".py")


def summary(node: Any) -> str:
    """Returns the first paragraph of a docstring."""
    if node is None:
        return "An alias."
    text = ast.get_docstring(node) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


@functools.cache
def tree(path: pathlib.Path) -> ast.Module:
    """Returns the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    _PAGE.write_text(index(), encoding="utf-8")
