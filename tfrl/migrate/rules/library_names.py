"""Names of libraries: packages that are renamed, names that moved or are gone."""

from __future__ import annotations

import ast
import re
from typing import Any

from tfrl.migrate import names
from tfrl.migrate.rule import File, Rule, argument, rule, text_in
from tfrl.migrate.scopes import dotted

# The imports that keep the name by which a program uses a package.
_KEPT: dict[str, str] = names.TABLES["kept"]


def _moved(name: str, page: str, table: str, text: list[str]) -> Rule:
    """Returns the rule that writes names as a table has them."""
    new_names: dict[str, str] = names.TABLES[table]

    def visit(node: ast.Attribute, file: File) -> None:
        if old := file.full_name(node):
            new = names.moved(old, new_names, is_exact=True)
            if new is not None:
                file.replace(node, file.written(new, dotted(node)))

    return Rule(name, page, "\n".join(text), (ast.Attribute,), visit, new_names)


MOVED = [_moved(**row) for row in names.TABLES["rules"]]


@rule("packages", "from_tf_agents", ast.Import, ast.ImportFrom, ast.Name)
def packages(node: Any, file: File) -> None:
    """Renames the packages in imports, and where a program uses them by their names.

    Example:
      -import gym, os
      -import reverb
      +import gymnasium as gym, os
      +from tfrl import replay_service as reverb
      -from acme import specs
      +from tfrl.acme import specs
      -import tf_agents
      +import tfrl
    """
    if isinstance(node, ast.Import):
        _import(node, file)
    elif isinstance(node, ast.ImportFrom):
        if node.module and not node.level:
            _import_from(node, file)
    elif node.id in ("tf_agents", "acme") and file.full_name(node) == node.id:
        file.replace(node, names.renamed(node.id))


def _target(name: str, file: File) -> str:
    """Returns the full name to import for one."""
    if name.partition(".")[0] in file.own:
        return name
    for each in MOVED:
        if new := names.moved(name, each.table, is_exact=False):
            name, file.rule = new, each
    if (new := names.renamed(name)) != name:
        file.rule = packages
    return new


def _import(node: ast.Import, file: File) -> None:
    parts, lines = [], []
    for alias in node.names:
        root = alias.name.partition(".")[0]
        new = _target(alias.name, file)
        if new == alias.name or alias.asname:
            as_name = f" as {alias.asname}" if alias.asname else ""
            parts.append(f"{new}{as_name}")
        elif root == "reverb":
            lines.append("from tfrl import replay_service as reverb")
        else:
            parts += [new] if "." in alias.name or root not in _KEPT else []
            parts += [_KEPT[root]] if root in _KEPT else []
    first = f"import {', '.join(parts)}" if parts else lines.pop(0)
    if [*parts, *lines] != [ast.unparse(alias) for alias in node.names]:
        file.replace(node, first)
        for line in lines:
            file.below(node, line)


def _import_from(node: ast.ImportFrom, file: File) -> None:
    old = node.module or ""
    groups: dict[str, list[tuple[ast.alias, str]]] = {}
    for alias in node.names:
        if alias.name == "*":
            module, text = _target(old, file), "*"
        else:
            full = _target(f"{old}.{alias.name}", file)
            module, _, text = full.rpartition(".")
            if alias.asname or text != alias.name:
                text += f" as {alias.asname or alias.name}"
        groups.setdefault(module, []).append((alias, text))
    (module, first), *rest = groups.items()
    if module != old:
        start, end = file.span(node)
        found = re.compile(rf"from[\s\\]+({re.escape(old)})\b").match(
            file.source, start, end
        )
        if found is None:
            return
        file.edit(*found.span(1), names.renamed(module))
    for alias, text in first:
        if text != ast.unparse(alias):
            file.replace(alias, text)
    if gone := [alias for _, group in rest for alias, _ in group]:
        file.remove(gone, node.names)
    for module, group in rest:
        texts = ", ".join(text for _, text in group)
        file.below(node, f"from {names.renamed(module)} import {texts}")


def new_place(name: str) -> str:
    """Returns the full name with tfrl for one of the libraries."""
    table = names.TABLES["places"]
    return names.renamed(names.moved(name, table, is_exact=False) or name)


@rule("module-strings", "from_tf_agents", ast.Call)
def module_strings(node: ast.Call, file: File) -> None:
    """Renames modules in strings that are imported.

    Example:
       import importlib
      -import tf_agents
      +import tfrl
      -dqn = importlib.import_module("tf_agents.agents.dqn.dqn_agent")
      +dqn = importlib.import_module("tfrl.agents.dqn.dqn_agent")
    """
    called = file.full_name(node.func) or dotted(node.func)
    given = argument(node, "name", 0)
    old = text_in(given)
    is_own = old.partition(".")[0] in file.own
    is_import = called in ("importlib.import_module", "__import__")
    if is_import and given and not is_own and new_place(old) != old:
        file.replace(given, file.text(given).replace(old, new_place(old)))


@rule(
    "absent-names",
    "from_tf_agents#what-is-not-here",
    ast.Import,
    ast.ImportFrom,
    ast.Attribute,
    ast.FunctionDef,
)
def absent_names(node: Any, file: File) -> None:
    """Says above a line what to use instead of a name that there is not.

    Example:
      +# tfrl migrate: tfrl.policies.py_tf_policy: TF-Agents has it, tfrl does not; instead: tfrl.policies.py_tf_eager_policy.
      -from tf_agents.policies import py_tf_policy
      +from tfrl.policies import py_tf_policy
    """  # noqa: E501
    if isinstance(node, ast.FunctionDef):
        bases = [file.scope.known(x) for x in getattr(file.parent, "bases", ())]
        is_ours = any(re.fullmatch(r"tfrl\..*\bPyEnvironment", x) for x in bases)
        if is_ours and node.name in ("reset", "step"):
            file.note(f"PyEnvironment has its own {node.name}: write _{node.name}.")
    elif isinstance(node, ast.Attribute):
        if not isinstance(file.parent, ast.Attribute):
            _attribute(node, file)
    elif not getattr(node, "level", 0):
        module = getattr(node, "module", None)
        for alias in node.names:
            name = f"{module}.{alias.name}" if module else alias.name
            _imported(name.removesuffix(".*"), file)


def _attribute(node: ast.Attribute, file: File) -> None:
    """Remarks on a name, unless its import is remarked on."""
    text = _absence(file.full_name(node))
    root = file.scope.qualified(dotted(node).partition(".")[0])
    # It may be an attribute of a class.
    is_attribute = re.search("(tfrl|gymnasium) has no", text)
    if text and not is_attribute and not _absence(root):
        file.remark(text)


def _imported(name: str, file: File) -> None:
    root = name.partition(".")[0]
    if root in file.own:
        if root == "keras":
            file.note("this module hides Keras from TensorFlow: rename it.")
        return
    if package := names.TABLES["installed_apart"].get(root):
        file.note(f"tfrl brings no {root}: pip install {package}.")
    if text := _absence(name):
        file.remark(text)


def _absence(name: str) -> str:
    """Returns what to write instead of a name that there is not; "" for others."""
    known = new = names.canonical(name)
    if known.partition(".")[0] == "tfrl" and (
        text := names.explanation(new_place(name))
    ):
        return text
    for each in MOVED:
        new = names.canonical(names.moved(new, each.table, is_exact=False) or new)
    text = names.remark(known) or names.remark(new)
    if not text and new.startswith("gymnasium."):
        text = names.explanation(new)
    return text or ""
