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
        self.node: Any = node
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
    """Reads the scopes of a module."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.of: dict[ast.AST, Scope] = {tree: self.module}
        self.around: dict[ast.AST, Scope] = {}
        self.above: dict[ast.AST, tuple[ast.AST, str]] = {}
        self.calls: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self.in_texts: set[ast.AST] = set()
        self._scope = self.module
        self.visit(tree)

    def visit(self, node: ast.AST) -> None:
        self.around[node] = outside = self._scope
        getattr(self, f"visit_{type(node).__name__}", id)(node)
        for field, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    self.above[each] = (node, field)
                    self.visit(each)
        self._scope = outside

    def _bind(self, target: ast.AST | None, value: ast.AST | None) -> None:
        """Records that a target gets a value."""
        if isinstance(target, ast.Name):
            self._record(target.id, target, value)
        elif isinstance(target, ast.Tuple | ast.List):
            values = getattr(value, "elts", ())
            same = len(values) == len(target.elts)
            for number, each in enumerate(target.elts):
                part = values[number] if same else None
                self._bind(getattr(each, "value", each), part)
        elif (owner := self._scope.owner) and dotted(target).startswith("self."):
            name = dotted(target).removeprefix("self.")
            binding = Binding(self._scope, target or self.module.node, value)
            owner.attributes.setdefault(name, []).append(binding)

    def _record(
        self, name: str, at: ast.AST, value: ast.AST | None = None, **known: Any
    ) -> None:
        scope = self.module if name in self._scope.outer else self._scope
        binding = Binding(self._scope, at, value, **known)
        scope.names.setdefault(name, []).append(binding)

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            name = each.asname or each.name.partition(".")[0]
            self._record(name, node, imported=each.name if each.asname else name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for each in node.names:
            full = f"{module}.{each.name}"
            self._record(each.asname or each.name, node, imported=full)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node: Any) -> None:
        self._bind(node.target, node.value)

    visit_AugAssign = visit_NamedExpr = visit_AnnAssign

    def visit_For(self, node: Any) -> None:
        for value in getattr(node.iter, "elts", None) or [None]:
            self._bind(node.target, value)

    visit_AsyncFor = visit_comprehension = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        self._bind(node.optional_vars, node.context_expr)

    def visit_Global(self, node: Any) -> None:
        self._scope.outer |= set(node.names)

    visit_Nonlocal = visit_Global

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.in_texts |= set(ast.walk(node)) - {node}

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func).rpartition(".")[2]
        self.calls.setdefault(name, []).append((node, self._scope))

    def visit_arguments(self, node: ast.arguments) -> None:
        function = self._scope.node
        of = getattr(function, "args", None)
        plain = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        for each in [*plain, node.vararg, node.kwarg]:
            # Others take the rest of the arguments, or belong to lambdas.
            if each in plain and node is of:
                self._record(each.arg, each, each.annotation, parameter=function)
            elif each is not None:
                self._record(each.arg, each)

    def visit_FunctionDef(self, node: Any) -> None:
        self._record(node.name, node, node)
        self.of[node] = self._scope = Scope(node, self._scope)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef


class Scopes(_Reader):
    """The scopes of a module.

    Attributes:
      module: The module's scope.
      of: The scopes by their definitions.
      around: The scope around each node, in the order of the text.
      above: The node above each, and the field of it.
      calls: The calls, by the names of what is called.
      in_texts: The nodes in f-strings.
    """

    def statement(self, node: ast.AST) -> ast.AST:
        """Returns the innermost statement around a node, or the node itself."""
        while not isinstance(node, ast.stmt) and node in self.above:
            node, _ = self.above[node]
        return node

    def _blocks(self, node: ast.AST) -> list[tuple[ast.AST, str]]:
        """Returns the nodes above one, the outermost first, with their fields."""
        found: list[tuple[ast.AST, str]] = []
        while node in self.above:
            found.insert(0, self.above[node])
            node, _ = self.above[node]
        return found

    def origins(
        self,
        node: ast.AST | None,
        scope: Scope,
        seen: tuple[Binding, ...] = (),
        at: ast.AST | None = None,
    ) -> Iterator[tuple[ast.AST | None, Scope]]:
        """Yields the expressions that may be the value of one, with their scopes.

        The expression is None for a value that the text does not tell. If the node
        `at` that uses it is given, a value counts no more once another is certain.
        """
        found: list[Binding] = []
        if isinstance(node, ast.Name):
            found = scope.find(node.id)
        elif dotted(node).startswith("self.") and (owner := scope.owner):
            found = owner.attributes.get(dotted(node).removeprefix("self."), [])
        if at is not None and all(x.scope is scope for x in found):
            found = self._reaching(found, self.statement(at))
        if not found or any(x.imported for x in found):
            yield node, scope
        for binding in [] if any(x.imported for x in found) else found:
            if binding in seen:
                continue
            values = [(binding.value, binding.scope)]
            if binding.parameter:
                given = list(self._arguments(binding.parameter, node))
                if not given:
                    yield from values
                values = given
            for value, place in values:
                yield from self.origins(value, place, (*seen, binding))

    def _reaching(self, found: list[Binding], at: ast.AST) -> list[Binding]:
        """Returns the last binding before a statement if it is certain, or else all."""

        def line(node: ast.AST) -> int:
            return getattr(node, "lineno", 0)

        places = {x: self.statement(x.statement) for x in found}
        before = [x for x in found if line(places[x]) < line(at)]
        if not before:
            return found
        last = max(before, key=lambda x: line(places[x]))
        around, outer = self._blocks(at), self._blocks(places[last])
        if around[: len(outer)] != outer:
            return found
        # A loop around the statement alone may come back with another value.
        inner = around[len(outer) :]
        again = any(
            x in inner for place in places.values() for x in self._blocks(place)
        )
        return found if again else [last]

    def _arguments(
        self, function: _Function, node: ast.AST | None
    ) -> Iterator[tuple[ast.AST | None, Scope]]:
        """Yields what calls in the module give for a parameter of a function."""
        name = node.id if isinstance(node, ast.Name) else ""
        order = [each.arg for each in function.args.args]
        owner = self.of[function].parent
        is_method = owner is not None and isinstance(owner.node, ast.ClassDef)
        index = order.index(name) - is_method if name in order else -1
        called = function.name
        if is_method and called == "__init__" and owner:
            called = owner.node.name
        for call, scope in self.calls.get(called, []):
            values = [x.value for x in call.keywords if x.arg == name]
            values += call.args[index : index + 1] if index >= 0 else []
            yield from ((value, scope) for value in values)
