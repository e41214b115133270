"""Which files of the repository a file uses, by what it imports and names.

Edges of this graph are imports, names that packages export by their `__init__.pyi`, and
texts that are a module's dotted name, as tables of commands have them. In tests such
names may be anywhere in a text, as for `python -m`; tests also name scripts, pages and
the command `tfrl`. A file that is no module, such as presets in JSON, stands for the
modules of its folder. So the graph has what a test may reach, and more.
"""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[1]
_ROOTS = ("tfrl", "tests", "examples", "benchmarks")
_MODULE = re.compile(rf"\b(?:{'|'.join(_ROOTS)})(?:\.\w+)+")
_ONLY_A_MODULE = re.compile(rf"({_MODULE.pattern})(?::\w+)?")
_PACKAGE = re.compile(r"tfrl(?:\.\w+)+\.")
# The command as a shell has it, and as a list of words.
_COMMAND = re.compile(r"(?:^|-m )tfrl(?:$| [a-z])")
_FILE = re.compile(r"[\w.]+\.[a-z]+\b|^docs$")


def touches(changed: Iterable[str], tests: Iterable[str]) -> set[str]:
    """Returns the tests that use one of the changed files, directly or through others.

    Args:
      changed: Paths from the repository's root. Files may be gone.
      tests: Paths of test files.
    """
    files = set(_files_that_stand_for(changed))
    everyone = {"tests/conftest.py", "pyproject.toml"}
    return {test for test in tests if files & (everyone | _reached(test))}


def _files_that_stand_for(changed: Iterable[str]) -> Iterator[str]:
    for path in changed:
        yield path
        if not path.endswith((".py", ".pyi")):
            yield from (_name(file) for file in (ROOT / path).parent.glob("*.py"))


@functools.cache
def _reached(file: str) -> frozenset[str]:
    """Returns the files that a file uses, and what these use, with itself."""
    found, waiting = set(), [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _uses(path)
    return frozenset(found)


@functools.cache
def _uses(file: str) -> frozenset[str]:
    """Returns the files that the text of a file imports or names."""
    path = ROOT / file
    if path.suffix not in (".py", ".pyi"):
        return frozenset()
    tree = _parsed(path)
    bound = _imported(tree, path.parent.relative_to(ROOT).parts)
    used = {file for name in bound.values() for file in _files_of(name)}
    if path.suffix == ".py":
        for node in ast.walk(tree):
            first, *rest = _dotted(node)
            if first in bound:
                used |= _files_of(".".join([bound[first], *rest]))
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used |= _files_of_text(node.value, path.parent)
    return frozenset(used - {file})


def _parsed(path: pathlib.Path) -> ast.Module:
    """Returns the tree of a file, without what only checkers of types read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    return tree


def _imported(tree: ast.Module, package: Sequence[str]) -> dict[str, str]:
    """Returns the dotted names that imports lead to, by what they bind them to."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                bound |= {first: first} if alias.asname is None else {}
                bound[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*parents, node.module or ""]).strip(".")
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{source}.{alias.name}"
    return bound


def _dotted(node: ast.AST) -> list[str]:
    """Returns the words of `a.b.c`, or an empty one for another expression."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    return [node.id, *words] if isinstance(node, ast.Name) else [""]


def _files_of_text(text: str, folder: pathlib.Path) -> set[str]:
    used: set[str] = set()
    if (only := _ONLY_A_MODULE.fullmatch(text)) is not None:
        used |= _files_of(only[1])
    elif _PACKAGE.fullmatch(text):  # The start of an f-string.
        within = ROOT.joinpath(*text.strip(".").split("."))
        used |= {_name(file) for file in within.glob("*.py")}
    if folder.is_relative_to(ROOT / "tests"):
        for name in _MODULE.findall(text):
            used |= _files_of(name)
        if _COMMAND.search(text):
            used |= {"tfrl/__main__.py"}
        within = _name(folder)
        for file in _FILE.findall(text):
            paths = _by_name().get(file, ())
            used |= {p for p in paths if p[-3:] != ".py" or p.startswith(within)}
    return used


@functools.cache
def _by_name() -> dict[str, set[str]]:
    """Returns the paths of files by their names; "docs" stands for all pages."""
    found = collections.defaultdict(set)
    for path in git("ls-files"):
        found[path.rpartition("/")[2]].add(path)
        if path.startswith("docs/"):
            found["docs"].add(path)
    return found


@functools.cache
def _files_of(name: str) -> frozenset[str]:
    """Returns the files that a dotted name leads to: of packages, a module, a stub."""
    first, *rest = name.split(".")
    if first not in _ROOTS:
        return frozenset()
    folder, files = ROOT / first, set()
    for depth, word in enumerate(["", *rest]):
        if word:
            if (folder / f"{word}.py").is_file():
                return frozenset(files | {_name(folder / f"{word}.py")})
            if not (folder / word).is_dir():
                stub = _exports(folder).get(word)
                if stub is None or stub == name:
                    return frozenset(files)
                files.add(_name(folder / "__init__.pyi"))
                return frozenset(files | _files_of(".".join([stub, *rest[depth:]])))
            folder = folder / word
        if (folder / "__init__.py").is_file():
            files.add(_name(folder / "__init__.py"))
    return frozenset(files)


@functools.cache
def _exports(folder: pathlib.Path) -> dict[str, str]:
    """Returns the dotted names that a package's stub exports, by their short names."""
    stub = folder / "__init__.pyi"
    if not stub.is_file():
        return {}
    return _imported(_parsed(stub), folder.relative_to(ROOT).parts)


def git(*words: str) -> list[str]:
    """Returns the lines that a command of git prints in the repository."""
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True).splitlines()


def _name(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()
