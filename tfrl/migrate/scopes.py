"""What the names in a program stand for, as far as its text tells."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

from tfrl.migrate import names

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True, eq=False)
class Binding:
    """One way in which a name gets its value.

    Attributes:
      scope: The scope of the value.
      statement: The statement.
      value: The expression or definition; None if it is not known.
      imported: The full name of what is imported; it begins with a dot if relative.
      parameter: The parameter's function.
    """

    scope: Scope
    statement: ast.AST
    value: ast.AST | None = None
    imported: str = ""
    parameter: _Function | None = None


class Scope:
    """The names of a module, a class or a function."""

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        """Creates a scope without names.

        Args:
          node: The definition, or the module.
          parent: The scope around it.
        """
        self.node = node
        self.parent = parent
        self.names: dict[str, list[Binding]] = {}
        self.attributes: dict[str, list[Binding]] = {}  # Those of `self`, in a class.
        self.outer: set[str] = set()  # The names that `global` and `nonlocal` name.

    def find(self, name: str) -> list[Binding]:
        """Returns the ways in which a name that is used here gets its value."""
        scope: Scope | None = self
        while scope is not None:
            is_seen = scope is self or not isinstance(scope.node, ast.ClassDef)
            if is_seen and name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return []

    @property
    def owner(self) -> Scope | None:
        """The nearest class around this scope."""
        if isinstance(self.node, ast.ClassDef):
            return self
        return self.parent.owner if self.parent else None

    def qualified(self, dotted: str) -> str:
        """Returns the full name for a dotted one by the imports, or "" without them."""
        root, dot, rest = dotted.partition(".")
        imported = {binding.imported for binding in self.find(root)}
        # Of `try: import gymnasium as gym` and `except: import gym`, both are meant.
        if "" in imported or len({x.removesuffix("nasium") for x in imported}) != 1:
            return ""
        return max(imported) + dot + rest

    def known(self, node: ast.AST | None) -> str:
        """Returns the canonical full name of an expression, or ""."""
        return names.canonical(self.qualified(dotted(node)))


def dotted(node: ast.AST | None) -> str:
    """Returns the text of a name with its attributes; "" for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (root := dotted(node.value)):
        return f"{root}.{node.attr}"
    return ""


class _Reader(ast.NodeVisitor):
    """Reads the scopes of a module, its statements in order, and its calls."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.of: dict[ast.AST, Scope] = {tree: self.module}  # By the definitions.
        self.calls: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self._scope = self.module
        self._statement: ast.AST = tree
        # The nodes around each statement, with the names of their fields.
        self._blocks: dict[ast.AST, tuple[tuple[ast.AST, str], ...]] = {tree: ()}
        for node in ast.walk(tree):
            for field, value in ast.iter_fields(node):
                for each in value if isinstance(value, list) else ():
                    if isinstance(each, ast.stmt | ast.ExceptHandler | ast.match_case):
                        self._blocks[each] = (*self._blocks[node], (node, field))
        statements = [x for x in ast.walk(tree) if isinstance(x, ast.stmt)]
        self.statements = sorted(statements, key=lambda x: (x.lineno, x.col_offset))
        self.generic_visit(tree)

    def visit(self, node: ast.AST) -> None:
        outside = self._statement
        self._statement = node if isinstance(node, ast.stmt) else outside
        super().visit(node)
        self._statement = outside

    def bind(self, target: ast.AST | None, value: ast.AST | None) -> None:
        """Records that a target gets a value."""
        if isinstance(target, ast.Name):
            self._record(target.id, self._binding(value))
        elif isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and (
                len(value.elts) == len(target.elts)
            )
            for number, each in enumerate(target.elts):
                part = getattr(value, "elts", ())[number] if same else None
                self.bind(getattr(each, "value", each), part)
        elif (owner := self._scope.owner) and dotted(target).startswith("self."):
            name = dotted(target).removeprefix("self.")
            owner.attributes.setdefault(name, []).append(self._binding(value))

    def _binding(self, value: ast.AST | None = None, **known: Any) -> Binding:
        return Binding(self._scope, self._statement, value, **known)

    def _record(self, name: str, binding: Binding) -> None:
        scope = self.module if name in self._scope.outer else self._scope
        scope.names.setdefault(name, []).append(binding)

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            name = each.asname or each.name.partition(".")[0]
            full = each.name if each.asname else name
            self._record(name, self._binding(imported=full))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for each in node.names:
            full = f"{module}.{each.name}"
            self._record(each.asname or each.name, self._binding(imported=full))

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.bind(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(
        self, node: ast.AnnAssign | ast.AugAssign | ast.NamedExpr
    ) -> None:
        self.bind(node.target, node.value)
        self.generic_visit(node)

    visit_AugAssign = visit_NamedExpr = visit_AnnAssign

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        for value in getattr(node.iter, "elts", None) or [None]:
            self.bind(node.target, value)
        self.generic_visit(node)

    visit_AsyncFor = visit_comprehension = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        self.bind(node.optional_vars, node.context_expr)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._scope.outer |= set(node.names)

    visit_Nonlocal = visit_Global

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func).rpartition(".")[2]
        self.calls.setdefault(name, []).append((node, self._scope))
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        function = self._scope.node
        binding = self._binding()
        if isinstance(function, _Function):
            of = function.args
            # The others take the rest of the arguments, or belong to lambdas.
            if node in (*of.posonlyargs, *of.args, *of.kwonlyargs):
                binding = self._binding(node.annotation, parameter=function)
        self._record(node.arg, binding)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: _Function | ast.ClassDef) -> None:
        self._record(node.name, self._binding(node))
        outside, self._scope = self._scope, Scope(node, self._scope)
        self.of[node] = self._scope
        self.generic_visit(node)
        self._scope = outside

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef


class Scopes(_Reader):
    """The scopes of a module, its statements in order, and its calls."""

    def origins(
        self,
        node: ast.AST | None,
        scope: Scope,
        seen: tuple[Binding, ...] = (),
        at: ast.AST | None = None,
    ) -> Iterator[tuple[ast.AST | None, Scope]]:
        """Yields the expressions that may be the value of one, with their scopes.

        The expression is None for a value that the text does not tell. If the statement
        `at` that uses it is given, a value counts no more once another is certain.
        """
        found = self._bindings(node, scope)
        if at is not None and all(x.scope is scope for x in found):
            found = self._reaching(found, at)
        if not found or any(x.imported for x in found):
            yield node, scope
            return
        for binding in found:
            if binding in seen:
                continue
            if binding.parameter:
                values = list(self._arguments(binding.parameter, node))
                if not values:
                    yield binding.value, binding.scope
            else:
                values = [(binding.value, binding.scope)]
            for value, place in values:
                yield from self.origins(value, place, (*seen, binding))

    def _reaching(self, found: list[Binding], at: ast.AST) -> list[Binding]:
        """Returns the last binding before a statement if it is certain, or else all."""

        def line(node: ast.AST) -> int:
            return getattr(node, "lineno", 0)

        before = [x for x in found if line(x.statement) < line(at)]
        if not before:
            return found
        last = max(before, key=lambda x: line(x.statement))
        around, outer = self._blocks[at], self._blocks[last.statement]
        if around[: len(outer)] != outer:
            return found
        # A loop around the statement alone may come back with another value.
        inner = set(around[len(outer) :])
        again = any(inner & set(self._blocks[x.statement]) for x in found)
        return found if again else [last]

    def _bindings(self, node: ast.AST | None, scope: Scope) -> list[Binding]:
        if isinstance(node, ast.Name):
            return scope.find(node.id)
        owner = scope.owner
        if isinstance(node, ast.Attribute) and dotted(node.value) == "self" and owner:
            return owner.attributes.get(node.attr, [])
        return []

    def _arguments(
        self, function: _Function, node: ast.AST | None
    ) -> Iterator[tuple[ast.AST | None, Scope]]:
        """Yields what calls in the module give for a parameter of a function."""
        name = node.id if isinstance(node, ast.Name) else ""
        names = [each.arg for each in function.args.args]
        owner = self.of[function].parent
        is_method = owner is not None and isinstance(owner.node, ast.ClassDef)
        index = names.index(name) - is_method if name in names else -1
        called = function.name
        if is_method and called == "__init__" and owner:
            called = getattr(owner.node, "name", "")
        for call, scope in self.calls.get(called, []):
            values = [x.value for x in call.keywords if x.arg == name]
            values += call.args[index : index + 1] if index >= 0 else []
            yield from ((value, scope) for value in values)
