"""Applies the rules to the text of one module, in one pass over its syntax tree."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from typing import Any

import libcst as cst

from tfrl.migrate import rule as rule_lib

_SPACE = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine)
_STATEMENT = (cst.BaseSmallStatement, cst.BaseCompoundStatement)


class UnreadableError(ValueError):
    """The text of a file is no Python of today."""


def parsed(source: str) -> ast.Module:
    """Returns the syntax tree of a module.

    Raises:
      UnreadableError: The text is no Python of today.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        place = f" in line {line}" if line else ""
        reason = getattr(error, "msg", None) or str(error)
        raise UnreadableError(f"no Python 3{place}: {reason}") from None


def rewrite(source: str, file: rule_lib.File, rules: Iterable[rule_lib.Rule]) -> str:
    """Returns the text of a module after the rules; the file has what they tell.

    Raises:
      UnreadableError: LibCST cannot read the text, or not write it again.
    """
    # LibCST drops spaces after the last line.
    body = source.rstrip(" \t\f")
    try:
        module = cst.parse_module(body)
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise UnreadableError(f"LibCST cannot read it: {error}") from None
    if module.code != body:
        raise UnreadableError("LibCST does not keep its text")
    new = module.visit(_Pass(file, rules))
    return _with_imports(new, file.added).code + source[len(body) :]


class _Pass(cst.CSTTransformer):
    """Walks through a module, and asks the rules about each piece."""

    def __init__(self, file: rule_lib.File, rules: Iterable[rule_lib.Rule]) -> None:
        super().__init__()
        self._file = file
        self._left = iter(file.scopes.statements)
        self._rules: dict[type, list[rule_lib.Rule]] = {}
        for rule in rules:
            for kind in rule.nodes:
                self._rules.setdefault(kind, []).append(rule)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _SPACE):
            return False
        file = self._file
        if isinstance(node, _STATEMENT):
            file.statements.append(next(self._left))
            file.scope = file.scopes.of.get(file.statement, file.scope)
        file.above.append(node)
        # Rules take an import as a whole: its parts are no uses of names.
        return not isinstance(node, cst.Import | cst.ImportFrom)

    def on_leave(self, original: Any, updated: Any) -> Any:
        if isinstance(original, _SPACE):
            return updated
        file = self._file
        file.above.pop()
        updated = self._ruled(original, updated)
        if isinstance(original, cst.FunctionDef | cst.ClassDef):
            file.scope = file.scope.parent or file.scope
        if isinstance(original, _STATEMENT):
            file.statements.pop()
        if remarks := file.remarks.get(original):
            updated = _below(updated, remarks)
        if isinstance(original, cst.SimpleStatementLine):
            return _divided(original, updated)
        if isinstance(original, cst.Module | cst.IndentedBlock):
            return _tidied(updated)
        return updated

    def _ruled(self, original: Any, updated: Any) -> Any:
        for rule in self._rules.get(type(original), ()):
            if type(updated) is not type(original):
                break
            new = rule.leave(original, updated, self._file)
            if new is not updated:
                self._file.changes.setdefault(rule.name, set()).add(self._file.line)
            updated = new
        return updated


def _below(node: Any, remarks: list[str]) -> Any:
    """Returns a statement below some comments."""
    lines = [cst.EmptyLine(comment=cst.Comment(text)) for text in remarks]
    return node.with_changes(leading_lines=[*node.leading_lines, *lines])


def _divided(original: cst.SimpleStatementLine, updated: Any) -> Any:
    """Returns a line that has got more statements as several lines."""
    if len(updated.body) <= len(original.body):
        return updated
    first, *rest = (
        cst.SimpleStatementLine(
            [each.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
        )
        for each in updated.body
    )
    return cst.FlattenSentinel([updated.with_changes(body=first.body), *rest])


def _tidied(block: Any) -> Any:
    """Returns a block without the statements that go.

    The comments above them stay, but for those on Keras: only its switch goes.
    """
    if not any(map(_goes, block.body)):
        return block
    kept: list[Any] = []
    comments: list[cst.EmptyLine] = []
    for each in block.body:
        if _goes(each):
            comments += [
                line
                for line in each.leading_lines
                if line.comment and "keras" not in line.comment.value.lower()
            ]
        else:
            lines = [*comments, *each.leading_lines]
            kept.append(each.with_changes(leading_lines=lines) if comments else each)
            comments = []
    return block.with_changes(body=kept, footer=[*comments, *block.footer])


def _goes(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and all(
        isinstance(each, rule_lib.Removed) for each in line.body
    )


def _with_imports(module: cst.Module, added: Iterable[str]) -> cst.Module:
    """Returns a module with more imports, below the first ones."""
    body = list(module.body)
    place = 0
    for number, line in enumerate(body):
        first = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        is_import = isinstance(first, cst.Import | cst.ImportFrom)
        is_text = isinstance(first, cst.Expr) and isinstance(
            first.value, cst.SimpleString
        )
        if not (is_import or is_text):
            break
        if is_import or number == 0:
            place = number + 1
    lines = [cst.parse_statement(text) for text in added]
    return module.with_changes(body=[*body[:place], *lines, *body[place:]])
