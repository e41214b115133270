"""Writes the pages of the API that Sphinx fills in from the docstrings.

Each public package has one, and each public module with names that its package does not
export. `conf.py` calls this at a build; the folder is not under version control.
"""

from __future__ import annotations

import ast
import functools
import pathlib

import api_index

_Object = tuple[pathlib.Path, str]  # Where an object is defined, and its name.


def write(folder: pathlib.Path) -> None:
    """Writes the pages to `folder`; a page that has not changed keeps its time."""
    folder.mkdir(exist_ok=True)
    pages = dict(_package_page(stub) for stub in api_index.stubs())
    for stub in api_index.stubs():
        for source, inside in api_index.further_modules(stub):
            name = _dotted(source)
            pages[name] = "\n".join([*_head(name), *_documented(source, inside)])
    for name in list(pages):
        if children := [page for page in pages if _parent(page, pages) == name]:
            head = ["", ".. toctree::", "   :hidden:", ""]
            pages[name] += "\n".join(
                [*head, *(f"   {child}" for child in children), ""]
            )
    for page in folder.glob("*.rst"):
        if page.stem not in pages:
            page.unlink()
    for name, text in pages.items():
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def first_pages() -> list[str]:
    """Returns the names of `tfrl` and of the packages in it."""
    packages = map(api_index.package_of, api_index.stubs())
    return [package for package in packages if package.count(".") < 2]


@functools.cache
def homes() -> dict[_Object, str]:
    """Returns for each object the package or module whose page describes it.

    Of the packages that export an object it is the nearest to its definition.
    """
    candidates: dict[_Object, list[str]] = {}
    for stub in api_index.stubs():
        for source, name in api_index.exports(stub)[1]:
            found = _object(source, name)
            candidates.setdefault(found, []).append(api_index.package_of(stub))
        for source, inside in api_index.further_modules(stub):
            for name in inside:
                candidates.setdefault((source, name), []).append(_dotted(source))
    return {
        found: max(places, key=lambda place: (_common(place, found[0]), -len(place)))
        for found, places in candidates.items()
    }


def home(source: pathlib.Path, name: str) -> str:
    """Returns the full name under which a name of `source` is described."""
    found = _object(source, name)
    return f"{homes()[found]}.{found[1]}"


@functools.cache
def classes() -> dict[str, str]:
    """Returns the full names of the public classes whose names are the only ones."""
    found: dict[str, list[str]] = {}
    for (source, name), place in homes().items():
        if isinstance(api_index.origin(source, name)[1], ast.ClassDef):
            found.setdefault(name, []).append(f"{place}.{name}")
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _package_page(stub: pathlib.Path) -> tuple[str, str]:
    package = api_index.package_of(stub)
    lines = _head(package)
    here, elsewhere = [], []
    for source, name in sorted(api_index.exports(stub)[1], key=lambda x: x[1].lower()):
        place = home(source, name)
        if place.rpartition(".")[0] == package:
            here.append((source, name))
        else:
            node = api_index.origin(source, name)[1]
            elsewhere += [
                f"   * - :py:obj:`{name} <{place}>`",
                f"     - {_as_text(api_index.summary(node))}",
            ]
    if elsewhere:
        lines += [".. list-table::", "   :widths: 30 70", "", *elsewhere, ""]
    for source, name in here:
        lines += _documented(source, [name])
    return package, "\n".join(lines)


def _parent(page: str, pages: dict[str, str]) -> str | None:
    """Returns the page under which another one is listed; None for the first ones.

    These are the packages in `tfrl`, so that the list has no level with one entry.
    """
    name = page
    while name := name.rpartition(".")[0]:
        if name in pages:
            return name if name != "tfrl" else None
    return None


def _head(name: str) -> list[str]:
    return [
        name,
        "=" * len(name),
        "",
        f".. automodule:: {name}",
        "   :no-members:",
        "",
        f".. py:currentmodule:: {name}",
        "",
    ]


def _documented(source: pathlib.Path, names: list[str]) -> list[str]:
    lines = []
    for name in names:
        node = api_index.origin(source, name)[1]
        if isinstance(node, ast.ClassDef):
            lines += [f".. autoclass:: {name}", ""]
        elif isinstance(node, ast.FunctionDef):
            lines += [f".. autofunction:: {name}", ""]
        else:
            lines += [f".. py:data:: {name}", "", "   An alias.", ""]
    return lines


def _object(source: pathlib.Path, name: str) -> _Object:
    return api_index.origin(source, name)[0], name


def _dotted(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(api_index.ROOT).with_suffix("").parts)


def _common(place: str, source: pathlib.Path) -> int:
    """Returns how many parts of a definition's module `place` begins with."""
    parts = place.split(".")
    return len(parts) if _dotted(source).split(".")[: len(parts)] == parts else 0


def _as_text(markdown: str) -> str:
    return markdown.replace("\\|", "|")
