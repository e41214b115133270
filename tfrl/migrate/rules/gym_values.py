"""Which values in a program are environments of gym."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import libcst as cst

from tfrl.migrate.rule import File, text_of
from tfrl.migrate.scopes import Scope, dotted

PAGE = "from_tf_agents#environments-of-gym"
_MAKERS = re.compile(r"gymnasium\.(make$|wrappers\.|envs\.\w+\.\w*Env)")


def is_environment(
    node: ast.AST | None, scope: Scope, file: File, at: ast.AST | None = None
) -> bool:
    """Whether the text of a program tells that a value is an environment of gym."""
    found = list(file.scopes.origins(node, scope, at=at))
    return bool(found) and all(_is_made(value, place, file) for value, place in found)


def _is_made(node: ast.AST | None, scope: Scope, file: File) -> bool:
    """Whether an expression makes an environment, or is one in its own class."""
    if isinstance(node, ast.Call):
        text = ast.unparse(node.func)
        if text == "super":
            return is_own(scope, file)
        made = _MAKERS.match(scope.known(node.func))
        if made or text.rpartition(".")[2] in file.classes:
            return True
        found = scope.find(text)
        return bool(found) and all(_returns_one(x.value, file) for x in found)
    if scope.known(node) == "gymnasium.Env":
        return True  # It is the annotation of an argument.
    if isinstance(node, ast.Attribute):
        if ast.unparse(node) == "self.env" and is_own(scope, file):
            return True
        return node.attr in ("unwrapped", "env") and is_environment(
            node.value, scope, file
        )
    return dotted(node) == "self" and is_own(scope, file)


def is_own(scope: Scope, file: File) -> bool:
    """Whether a scope is in a class of the program that is an environment."""
    owner = scope.owner
    return owner is not None and getattr(owner.node, "name", "") in file.classes


def _returns_one(node: ast.AST | None, file: File) -> bool:
    """Whether a function of the program returns an environment."""
    if not isinstance(node, ast.FunctionDef):
        return False
    values = [x.value for x in ast.walk(node) if isinstance(x, ast.Return)]
    scope = file.scopes.of[node]
    return bool(values) and all(is_environment(x, scope, file) for x in values)


def is_method(call: cst.CSTNode, name: str, file: File) -> bool:
    """Whether an expression is the call of a method of an environment of gym."""
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    receiver = call.func.value
    return call.func.attr.value == name and (
        is_self(receiver, file)
        or is_environment(file.expression(receiver), file.scope, file, file.statement)
    )


def is_self(node: cst.CSTNode, file: File) -> bool:
    """Whether an expression is `self` in such a class."""
    return text_of(node) == "self" and is_own(file.scope, file)


def flags_of(file: File) -> tuple[str, str]:
    """Returns the names of the two flags, other ones if the file has these."""
    is_free = not re.search(r"\b(terminated|truncated)\b", file.source)
    return ("terminated", "truncated") if is_free else ("is_terminated", "is_truncated")


def tuple_of(values: Iterable[cst.BaseExpression]) -> cst.Tuple:
    """Returns a tuple without parentheses."""
    return cst.Tuple([cst.Element(value) for value in values], lpar=(), rpar=())
