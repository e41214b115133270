"""Rules look at the pieces of a program, and write some of them otherwise."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, ClassVar

import libcst as cst

from tfrl.migrate import names, scopes


class Removed(cst.Pass):
    """Stands for a statement that goes."""


class Rule:
    """A change of programs; the docstring of each has an example, as a diff.

    Attributes:
      name: Its name in the list of changes.
      page: The place in the guide that explains it.
      nodes: The kinds of pieces that it looks at.
    """

    name: ClassVar[str]
    page: ClassVar[str]
    nodes: ClassVar[tuple[type[cst.CSTNode], ...]]

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """Returns what to write for a piece: itself, another, or several.

        Args:
          original: The piece.
          updated: The same after the changes inside of it.
          file: What is known of the file.
        """
        raise NotImplementedError

    @property
    def example(self) -> str:
        """What the rule makes of a program, as a diff of whole files."""
        text = (inspect.getdoc(self) or "").partition("Example:\n")[2]
        return textwrap.dedent(text) + "\n"

    @property
    def before(self) -> str:
        """The program of the example."""
        return self._side("+")

    @property
    def after(self) -> str:
        """The program of the example after the rule."""
        return self._side("-")

    def _side(self, other: str) -> str:
        lines = self.example.splitlines(keepends=True)
        return "".join(x[1:] or x for x in lines if x[0] != other)


class File:
    """What rules know of a file, and what they tell about it.

    Attributes:
      source: The text of the file.
      scopes: The names of the file.
      classes: The names of the program's classes that are environments of gym.
      own: The modules of the program's folders, which hide libraries.
      scope: The scope of the piece that a rule looks at.
      above: The pieces around it, the outermost first.
      statements: The module and the statements around it, and itself if it is one.
      changes: The lines that each rule has changed, by its name.
      notes: Lines, names of rules, and what a person must decide there.
      remarks: The comments for statements.
      added: The import statements to add.
    """

    def __init__(
        self, source: str, scopes_: scopes.Scopes, classes: set[str], own: set[str]
    ) -> None:
        """Reads a file.

        Args:
          source: Its text.
          scopes_: Its names.
          classes: See the class.
          own: See the class.
        """
        self.source = source
        self.scopes = scopes_
        self.classes = classes
        self.own = own
        self.scope = self.scopes.module
        self.above: list[Any] = []
        self.statements: list[ast.AST] = [scopes_.module.node]
        self.changes: dict[str, set[int]] = {}
        self.notes: dict[tuple[int, str, str], None] = {}
        self.remarks: dict[cst.CSTNode, list[str]] = {}
        self.added: dict[str, None] = {}

    @property
    def statement(self) -> ast.AST:
        """The innermost statement around the piece, or the piece itself."""
        return self.statements[-1]

    @property
    def line(self) -> int:
        """The line of the statement that a rule looks at."""
        return getattr(self.statement, "lineno", 1)

    @property
    def bases(self) -> list[ast.expr]:
        """The base classes of the class around a method."""
        around = self.scope.parent
        return getattr(around.node, "bases", []) if around else []

    def note(self, rule: str, text: str) -> None:
        """Lists what a person must decide."""
        self.notes[self.line, rule, text] = None

    def remark(self, rule: str, text: str) -> None:
        """Lists what a person must decide, and writes it above the statement."""
        self.note(rule, text)
        comment = f"# tfrl migrate: {text}"
        place = next(x for x in reversed(self.above) if hasattr(x, "leading_lines"))
        lines = list(place.leading_lines)
        if place is self.above[0].body[0]:
            lines += self.above[0].header
        remarks = self.remarks.setdefault(place, [])
        if comment not in (*remarks, *(x.comment.value for x in lines if x.comment)):
            remarks.append(comment)
            self.changes.setdefault(rule, set()).add(self.line)

    def full_name(self, node: cst.CSTNode) -> str:
        """Returns the full name of an expression, as the program imports it, or ""."""
        name = self.scope.qualified(text_of(node))
        return "" if name.partition(".")[0] in self.own else name

    def known(self, node: cst.CSTNode) -> str:
        """Returns the canonical full name of an expression, or ""."""
        return names.canonical(self.full_name(node))

    def written(self, new: str, old: str = "") -> cst.BaseExpression:
        """Returns the expression for a full name; adds an import if it needs one.

        Args:
          new: The name, or another expression if it has a sign, quotes or brackets.
          old: The name that it replaces, in the program's own words.
        """
        sign, new = new[: new.startswith("-")], new.removeprefix("-")
        if not new.replace(".", "").isidentifier():
            return cst.parse_expression(new)
        root = old.partition(".")[0]
        imported = names.renamed(self.scope.qualified(root)) if root else ""
        if new.startswith("builtins."):
            text = new.removeprefix("builtins.")
        elif imported and new.startswith(f"{imported}."):
            text = root + new[len(imported) :]
        else:
            text = self._imported(new)
        return cst.parse_expression(f"({sign}{text})" if sign else text)

    def _imported(self, new: str) -> str:
        for name, found in self.scopes.module.names.items():
            if {names.canonical(x.imported) for x in found} == {names.canonical(new)}:
                return name
        module, _, last = new.rpartition(".")
        statement = f"from {module} import {last}" if module else f"import {last}"
        if any(last in scope.names for scope in self.scopes.of.values()):
            statement += f" as {last}_of_{module.rpartition('.')[2]}"
        self.added[statement] = None
        return statement.rpartition(" ")[2]

    def expression(self, node: cst.CSTNode) -> ast.expr:
        """Returns the syntax tree of an expression, for the analysis of its names."""
        return ast.parse(f"({code(node)})", mode="eval").body


_EMPTY = cst.Module([])


def code(node: cst.CSTNode) -> str:
    """Returns the text of a piece of a program."""
    return _EMPTY.code_for_node(node)


def text_of(node: cst.CSTNode | None) -> str:
    """Returns the text of a name with its attributes; "" for other expressions."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (root := text_of(node.value)):
        return f"{root}.{node.attr.value}"
    return ""


def method_of(node: cst.CSTNode) -> str:
    """Returns the name of the method that an expression calls, or ""."""
    is_method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return node.func.attr.value if is_method else ""


def argument(call: cst.Call, name: str, place: int | None = None) -> cst.Arg | None:
    """Returns the argument of a call by its name, or by its place; None without it."""
    for number, each in enumerate(call.args):
        is_there = each.keyword is None and not each.star and number == place
        if is_there or (each.keyword is not None and each.keyword.value == name):
            return each
    return None


def arguments(text: str) -> list[cst.Arg]:
    """Returns the arguments of a call that some text has between the brackets."""
    return list(cst.ensure_type(cst.parse_expression(f"f({text})"), cst.Call).args)


def text_in(node: cst.CSTNode | None) -> str:
    """Returns the text that a string literal stands for; "" for other expressions."""
    value = getattr(node, "evaluated_value", None)
    return value if isinstance(value, str) else ""
