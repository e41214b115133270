"""The names that programs use, and what to write for them.

A program's own spelling, such as `tensorflow.keras.losses` or `gym.Env`, has a
canonical one, `keras.losses` or `gymnasium.Env`, by which the tables of rules go.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import pathlib

from tfrl import imports

# Where the packages are whose names are looked up.
_ROOTS = {
    package: pathlib.Path(spec.origin).parents[1]
    for package in ("tfrl", "gymnasium")
    if (spec := importlib.util.find_spec(package)) and spec.origin
}
# The libraries whose programs are moved, and tfrl for programs that are half moved.
LIBRARIES = ("tf_agents", "acme", "reverb", "tfrl")
# What has become of names, by their canonical ones. `rules` are those on names, and the
# tables that they use. `packages` are the packages whose imports are renamed,
# `spellings` those that only have another canonical name, `installed_apart` those that
# came with TF-Agents or Acme, and not with tfrl. `arguments` belong to functions, or to
# methods of any object, as `methods` do: what is no name is a text for a person, ""
# deletes an argument, and "+" adds one. Gymnasium's wrappers have `of_wrappers`.
TABLES = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
_PACKAGES: dict[str, str] = TABLES["packages"]
# Modules of TensorFlow, and the names that have moved there: `old=new` if they differ.
TABLES["tensorflow"] = {
    f"tensorflow.{old}": ".".join(filter(None, ["tensorflow", module, new or old]))
    for module, words in TABLES["tensorflow"].items()
    for old, _, new in (word.partition("=") for word in words.split())
}
TABLES["places"] |= {
    f"{row.module}.{old}": new
    for row in imports.absent_rows()
    for old, new in zip(row.names, row.moved, strict=False)  # Most have none.
}
# What to do without names, by the names.
_ABSENT = {name: text for text, x in TABLES["absent"].items() for name in x.split()}


def _replaced(name: str, table: dict[str, str]) -> str:
    for part in prefixes(name):
        if part in table:
            return table[part] + name[len(part) :]
    return name


def prefixes(name: str) -> list[str]:
    """Returns a dotted name and what it begins with, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:number]) for number in range(len(parts), 0, -1)]


def canonical(name: str) -> str:
    """Returns the canonical spelling of a full name."""
    return _replaced(_replaced(name, _PACKAGES), TABLES["spellings"])


def renamed(name: str) -> str:
    """Returns a full name with the package that it has with tfrl."""
    return _replaced(name, _PACKAGES)


def moved(name: str, table: dict[str, str], *, is_exact: bool) -> str | None:
    """Returns what to write for a full name by a table of canonical names, or None.

    Args:
      name: The name, in the program's spelling.
      table: Maps canonical names to others, or to expressions.
      is_exact: Whether a longer name than one of the table has no entry.
    """
    known = canonical(name)
    for part in [known] if is_exact else prefixes(known):
        if part in table:
            new = table[part] + known[len(part) :]
            # A program that writes tf.keras.X goes on with tf.keras.
            for root in reversed(prefixes(known)):
                rest = known[len(root) :]
                if rest and name.endswith(rest) and new.startswith(f"{root}."):
                    return renamed(name.removesuffix(rest) + new[len(root) :])
            return new
    return None


def remark(name: str) -> str | None:
    """Returns what a person must write otherwise for a canonical name, or None."""
    name = name.replace("tensorflow.compat.v1.", "tensorflow.")
    found = next((part for part in prefixes(name) if part in _ABSENT), None)
    return f"{found}: {_ABSENT[found]}" if found else None


def file_of(module: str) -> pathlib.Path | None:
    """Returns the file that says what names a module has; None without one.

    Args:
      module: A module of tfrl or Gymnasium.
    """
    root, *parts = module.split(".")
    path = _ROOTS[root].joinpath(root, *parts)
    for file in (path / "__init__.pyi", path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file
    return None


@functools.cache
def _names_in(module: str) -> set[str] | None:
    """Returns the names of a module, or None if it cannot be told from its text."""
    file = file_of(module)
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())) if file else ():
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return None if "*" in names or "__getattr__" in names else names


def explanation(name: str) -> str | None:
    """Returns why tfrl or Gymnasium lacks a name; None if it has it."""
    for part in reversed(prefixes(name)):
        if text := imports.explanation(part):
            return f"{part}: {text}"
    module, _, last = name.rpartition(".")
    if not module or _has(name):
        return None
    if ".examples" in module:
        return f"{module}: tfrl has no examples; import your own copy of the file."
    root = name.partition(".")[0]
    if file_of(module):
        return f"{root} has no name {last} in {module}."
    # What is in no module may be an attribute of a class.
    return None if _has(module) else f"{root} has no module {module}."


def _has(name: str) -> bool:
    """Whether a name is a module or in one, as far as its text tells."""
    module, _, last = name.rpartition(".")
    if file_of(name) or not file_of(module):
        return file_of(name) is not None
    known = _names_in(module)
    return known is None or last in known or last.startswith("__")
