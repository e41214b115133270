"""Rules look at the nodes of a program, and write some of them otherwise."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import itertools
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfrl.migrate import names
from tfrl.migrate.scopes import Scope, Scopes, dotted


class UnreadableError(ValueError):
    """The text of a file is no Python of today."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """A change of programs.

    Attributes:
      name: Its name in the list of changes.
      page: The place in the guide that explains it.
      text: What it does, with an example as a diff of whole files.
      nodes: The kinds of nodes that it looks at.
      visit: Edits a file at a node, or lists what a person must decide there.
      table: The new names, by the old ones, of a rule for names.
    """

    name: str
    page: str
    text: str
    nodes: tuple[type[ast.AST], ...]
    visit: Callable[[Any, File], None]
    table: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def example(self) -> str:
        """What the rule makes of a program, as a diff of whole files."""
        return textwrap.dedent(self.text.partition("Example:\n")[2]) + "\n"

    def side(self, other: str) -> str:
        """Returns the program of the example before ("+") or after ("-") the rule."""
        lines = self.example.splitlines(keepends=True)
        return "".join(x[1:] or x for x in lines if x[0] != other)


def rule(
    name: str, page: str, *nodes: type[ast.AST]
) -> Callable[[Callable[[Any, File], None]], Rule]:
    """Makes a rule of a function, whose docstring is the rule's text."""
    return lambda visit: Rule(name, page, inspect.getdoc(visit) or "", nodes, visit)


def scopes_in(source: str) -> Scopes:
    """Returns the names of a module.

    Raises:
      UnreadableError: The text is no Python of today.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Scopes(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        place = f" in line {line}" if line else ""
        reason = getattr(error, "msg", None) or str(error)
        raise UnreadableError(f"no Python 3{place}: {reason}") from None


class File:
    """A file of Python: what rules know of it, and what they tell about it.

    Attributes:
      source: The text of the file.
      scopes: The names of the file.
      classes: The names of the program's classes that are environments of gym.
      own: The modules of the program's folders, which hide libraries.
      rule: The rule at work.
      node: The node that it looks at.
      changes: The lines that each rule has changed, by its name.
      notes: Lines, names of rules, and what a person must decide there.
    """

    rule: Rule
    node: ast.AST

    def __init__(
        self, source: str, scopes: Scopes, classes: set[str], own: set[str]
    ) -> None:
        """Prepares a file; see the class."""
        self.source = source
        self.scopes = scopes
        self.classes = classes
        self.own = own
        self.changes: dict[str, set[int]] = {}
        self.notes: dict[tuple[int, str, str], None] = {}
        # As the parser counts them: other characters end no line.
        self._lines = io.StringIO(source, newline="").readlines()
        self._starts = [0, *itertools.accumulate(map(len, self._lines))]
        self._end = "\r\n" if "\r\n" in source else "\n"
        # The place, the end and the text of each; an insertion has its end there.
        self._edits: dict[tuple[int, int, str, int], None] = {}
        self._added: dict[str, None] = {}

    def apply(self, rules: Iterable[Rule]) -> str:
        """Returns the text after the rules."""
        for node, rule in itertools.product([*self.scopes.around], rules):
            if isinstance(node, rule.nodes) and self._is_there(node):
                self.node, self.rule = node, rule
                rule.visit(node, self)
        self._add_imports()
        parts, end = [], 0
        # Of two that overlap the larger one counts.
        for edit in sorted(self._edits, key=lambda x: (x[0], x[0] < x[1], -x[1], x[3])):
            start, stop, text, _ = edit
            if start >= end:
                parts += [self.source[end:start], text]
                end = stop
        return "".join([*parts, self.source[end:]])

    def _is_there(self, node: ast.AST) -> bool:
        """Whether a node is where the parser says; before 3.12 not in all f-strings."""
        if node not in self.scopes.in_texts:
            return True
        try:
            found = ast.parse(self.text(node), mode="eval").body
        except (SyntaxError, ValueError, IndexError, AttributeError):
            return False
        return ast.dump(found) == ast.dump(node)

    @property
    def scope(self) -> Scope:
        """The scope around the node."""
        return self.scopes.around[self.node]

    @property
    def parent(self) -> ast.AST:
        """The node above the node."""
        return self.scopes.above[self.node][0]

    @property
    def line(self) -> int:
        """The line of the statement around the node."""
        return getattr(self.scopes.statement(self.node), "lineno", 1)

    def span(self, node: Any) -> tuple[int, int]:
        """Returns where the text of a node begins and ends."""
        start = self._place(node.lineno, node.col_offset)
        return start, self._place(node.end_lineno, node.end_col_offset)

    def _place(self, line: int, column: int) -> int:
        """Returns the place of a column, which the parser counts in bytes."""
        before = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(before.decode())

    def text(self, node: ast.AST) -> str:
        """Returns the text of a node."""
        start, end = self.span(node)
        return self.source[start:end]

    def edit(self, start: int, end: int, text: str, order: int | None = None) -> None:
        """Replaces a piece of the text.

        Args:
          start: Where it begins.
          end: Where it ends.
          text: The new text.
          order: The order among the insertions at one place.
        """
        order = len(self._edits) if order is None else order
        self._edits[start, end, text, order] = None
        self.changes.setdefault(self.rule.name, set()).add(self.line)

    def replace(self, node: ast.AST, text: str) -> None:
        """Replaces the text of a node."""
        self.edit(*self.span(node), text)

    def wrap(self, node: ast.AST, before: str, after: str) -> None:
        """Writes something before and after a node."""
        start, end = self.span(node)
        if before:
            self.edit(start, start, before)
        self.edit(end, end, after, -len(self._edits))  # Inner ones come first.

    def replace_name(self, node: ast.Attribute, name: str) -> None:
        """Replaces the last name of an attribute."""
        _, end = self.span(node)
        self.edit(end - len(node.attr), end, name)

    def add_argument(self, call: ast.Call, text: str) -> None:
        """Writes a further argument of a call."""
        end = self.span(call)[1] - 1
        ends = [self.span(x)[1] for x in (*call.args, *call.keywords)]
        rest = self.source[max(ends, default=end) : end]
        place = end if "#" in rest else end - len(rest) + len(rest.rstrip())
        comma = " " if "," in re.sub("#.*", "", rest) else ", "
        self.edit(place, place, f"{comma if ends else ''}{text}")

    def remove(self, gone: Sequence[Any], among: Sequence[Any]) -> None:
        """Deletes arguments, or names of an import.

        Args:
          gone: Which; not all names of an import.
          among: Those and the others, in their order.
        """
        last = -1  # The number of the last one that stays.
        for number, each in enumerate(among):
            last = last if each in gone else number
        for number, each in enumerate(among):
            start, end = self.span(each)
            if each not in gone:
                continue
            if number < last:
                self.edit(start, self.span(among[number + 1])[0], "")
            else:
                if last >= 0:
                    start = self.source.index(",", self.span(among[last])[1])
                rest = re.compile(r"\s*,|").match(self.source, end)
                self.edit(start, rest.end() if rest else end, "")

    def above(self, statement: Any, text: str) -> None:
        """Writes a line above a statement."""
        start = self._starts[statement.lineno - 1]
        self.edit(start, start, f"{self._indent(statement)}{text}{self._end}")

    def below(self, statement: Any, text: str) -> None:
        """Writes a statement after another one."""
        end = self.span(statement)[1]
        line = self._starts[statement.end_lineno]
        if self._is_alone(statement):
            kept = self.source[end:line].rstrip("\r\n")
            text = f"{self._end}{self._indent(statement)}{text}"
            self.edit(end + len(kept), end + len(kept), text)
        else:
            self.edit(end, end, f"; {text}")

    def delete(self, statement: Any, about: str, text: str = "") -> None:
        """Deletes a statement, and the comments above it that have a word.

        Args:
          statement: The statement.
          about: The word.
          text: A statement in its place.
        """
        above = itertools.takewhile(
            lambda x: about in x.lower(), self._comments_above(statement.lineno)
        )
        if self._is_alone(statement):
            first = statement.lineno - len(list(above))
            text = text and f"{self._indent(statement)}{text}{self._end}"
            self.edit(self._starts[first - 1], self._starts[statement.end_lineno], text)
        else:
            self.replace(statement, "pass")

    def _comments_above(self, line: int) -> list[str]:
        """Returns the comments directly above a line, the nearest first."""
        above = (x.strip() for x in reversed(self._lines[: line - 1]))
        return list(itertools.takewhile(lambda x: x.startswith("#"), above))

    def _indent(self, statement: Any) -> str:
        line = self._lines[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def _is_alone(self, statement: Any) -> bool:
        """Whether there is no other statement in the lines of one."""
        start, end = self.span(statement)
        rest = self.source[end : self._starts[statement.end_lineno]].lstrip()
        before = self.source[self._starts[statement.lineno - 1] : start]
        return not before.strip() and (not rest or rest.startswith("#"))

    def note(self, text: str) -> None:
        """Lists what a person must decide."""
        self.notes[self.line, self.rule.name, text] = None

    def remark(self, text: str) -> None:
        """Lists what a person must decide, and writes it above the statement."""
        known = len(self.notes)
        self.note(text)
        comment = f"# tfrl migrate: {text}"
        is_new = comment not in self._comments_above(self.line)
        if is_new and len(self.notes) > known:
            self.above(self.scopes.statement(self.node), comment)

    def full_name(self, node: ast.AST | None) -> str:
        """Returns the full name of an expression, as the program imports it, or ""."""
        name = self.scope.qualified(dotted(node))
        return "" if name.partition(".")[0] in self.own else name

    def known(self, node: ast.AST | None) -> str:
        """Returns the canonical full name of an expression, or ""."""
        return names.canonical(self.full_name(node))

    def written(self, new: str, old: str = "") -> str:
        """Returns what to write for a full name; adds an import if it needs one.

        Args:
          new: The name, or another expression if it has a sign, quotes or brackets.
          old: The name that it replaces, in the program's own words.
        """
        sign, new = new[: new.startswith("-")], new.removeprefix("-")
        if not new.replace(".", "").isidentifier():
            return new
        root = old.partition(".")[0]
        imported = names.renamed(self.scope.qualified(root)) if root else ""
        if new.startswith("builtins."):
            text = new.removeprefix("builtins.")
        elif imported and new.startswith(f"{imported}."):
            text = root + new[len(imported) :]
        else:
            text = self._imported(new)
        return f"({sign}{text})" if sign else text

    def _imported(self, new: str) -> str:
        for name, found in self.scopes.module.names.items():
            if {names.canonical(x.imported) for x in found} == {names.canonical(new)}:
                return name
        module, _, last = new.rpartition(".")
        statement = f"from {module} import {last}" if module else f"import {last}"
        if any(last in scope.names for scope in self.scopes.of.values()):
            statement += f" as {last}_of_{module.rpartition('.')[2]}"
        self._added[statement] = None
        return statement.rpartition(" ")[2]

    def _add_imports(self) -> None:
        """Writes the imports that are missing below the first ones."""
        body = self.scopes.module.node.body
        first = list(itertools.takewhile(_is_import_or_text, body))
        while len(first) > 1 and isinstance(first[-1], ast.Expr):
            first.pop()
        place = 0
        if body:
            place = first[-1].end_lineno if first else body[0].lineno - 1
        for text in self._added:
            start = self._starts[place]
            has_line = not start or self.source[start - 1] == "\n"
            text = f"{'' if has_line else self._end}{text}{self._end}"
            self._edits[start, start, text, len(self._edits)] = None


def _is_import_or_text(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Import | ast.ImportFrom) or bool(text_in(value))


def argument(call: ast.Call, name: str, place: int | None = None) -> ast.expr | None:
    """Returns the argument of a call by its name, or by its place; None without it."""
    for each in call.keywords:
        if each.arg == name:
            return each.value
    if place is None or any(isinstance(x, ast.Starred) for x in call.args[:place]):
        return None
    found = call.args[place : place + 1]
    return found[0] if found and not isinstance(found[0], ast.Starred) else None


def text_in(node: ast.AST | None) -> str:
    """Returns the text that a string stands for; "" for other expressions."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def method_of(node: ast.AST | None) -> str:
    """Returns the name of the method that an expression calls, or ""."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else ""
