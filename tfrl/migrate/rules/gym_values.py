"""Which values in a program are environments of gym."""

from __future__ import annotations

import ast
import re

from tfrl.migrate.rule import File, method_of
from tfrl.migrate.scopes import Scope, dotted

PAGE = "from_tf_agents#environments-of-gym"
_MAKERS = re.compile(r"gymnasium\.(make$|wrappers\.|envs\.\w+\.\w*Env)")


def is_environment(
    node: ast.AST | None, file: File, scope: Scope | None = None
) -> bool:
    """Whether the text of a program tells that a value is an environment of gym.

    Args:
      node: The expression.
      file: The file.
      scope: Where it stands; the place of the file's node if it is None.
    """
    at = None if scope else file.node
    found = list(file.scopes.origins(node, scope or file.scope, at=at))
    return bool(found) and all(_is_made(value, file, place) for value, place in found)


def _is_made(node: ast.AST | None, file: File, scope: Scope) -> bool:
    """Whether an expression makes an environment, or is one in its own class."""
    if isinstance(node, ast.Call):
        text = ast.unparse(node.func)
        if text == "super":
            return is_own(file, scope)
        made = _MAKERS.match(scope.known(node.func))
        if made or text.rpartition(".")[2] in file.classes:
            return True
        found = scope.find(text)
        return bool(found) and all(_returns_one(x.value, file) for x in found)
    if scope.known(node) == "gymnasium.Env":
        return True  # It is the annotation of an argument.
    if dotted(node) in ("self", "self.env") and is_own(file, scope):
        return True
    return getattr(node, "attr", "") in ("unwrapped", "env") and is_environment(
        getattr(node, "value", None), file, scope
    )


def is_own(file: File, scope: Scope) -> bool:
    """Whether a scope is in a class of the program that is an environment."""
    return scope.owner is not None and scope.owner.node.name in file.classes


def _returns_one(node: ast.AST | None, file: File) -> bool:
    """Whether a function of the program returns an environment."""
    if not isinstance(node, ast.FunctionDef):
        return False
    values = [x.value for x in ast.walk(node) if isinstance(x, ast.Return)]
    scope = file.scopes.of[node]
    return bool(values) and all(is_environment(x, file, scope) for x in values)


def is_method(call: ast.AST | None, name: str, file: File) -> bool:
    """Whether an expression is the call of a method of an environment of gym."""
    if method_of(call) != name:
        return False
    receiver = receiver_of(call)
    is_self = dotted(receiver) == "self" and is_own(file, file.scope)
    return is_self or is_environment(receiver, file)


def receiver_of(call: ast.AST | None) -> ast.AST | None:
    """Returns the object whose method an expression calls."""
    return getattr(getattr(call, "func", None), "value", None)


def flags_of(file: File) -> tuple[str, str]:
    """Returns the names of the two flags, other ones if the file has these."""
    is_free = not re.search(r"\b(terminated|truncated)\b", file.source)
    return ("terminated", "truncated") if is_free else ("is_terminated", "is_truncated")
