"""Checks programs without running them: only their imports are done."""

import ast
import builtins
import functools
import inspect
import itertools


def faults(code, path, without=()):
    """Returns what a program names that does not exist, with its lines.

    The code is compiled, and its imports are done. Each name has to be bound, and
    each attribute of a module or class has to be there. What the package defines has
    to take the arguments that it is given, also the methods that a class inherits.

    Args:
      code: The text of the program.
      path: Its file, for errors.
      without: Packages that are not imported; what comes from them is not looked up.

    Raises:
      SyntaxError: It does not compile.
      ImportError: A module is missing that is imported outside of all functions.
    """
    tree = ast.parse(code, str(path))
    compile(tree, str(path), "exec")
    nodes = list(ast.walk(tree))
    imported, bound = _imported_by(tree, path, without), {*_bound_by(nodes)}
    outside = {name: x for name, x in imported.items() if name not in bound}
    aliases = {
        (node.asname or node.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.alias)
    }
    known = {*bound, *aliases, *vars(builtins), "__file__", "__name__"}
    inherited = dict(_calls_of_inherited_methods(nodes, outside))
    found = []
    for node in nodes:
        fault = None
        if isinstance(node, ast.Name) and node.id not in known:
            fault = node.id
        elif isinstance(node, ast.Attribute) and _is_missing(node, outside):
            fault = ast.unparse(node)
        elif isinstance(node, ast.Call):
            called = _value_of(node.func, outside)
            fault = _refused_arguments(node, inherited.get(node, called))
        if fault:
            found.append(f"{path}:{node.lineno}: {fault}")
    return found


def _imported_by(tree, path, without):
    """Does the imports, and returns what they bind."""
    names = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        module = getattr(node, "module", None) or node.names[0].name
        if module.partition(".")[0] in without:
            continue
        try:
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
        except ModuleNotFoundError:
            # A function may import what not every user has.
            if node in tree.body or module.startswith("tfrl"):
                raise
    return names


def _bound_by(nodes):
    """The names that assignments, arguments and definitions bind."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            yield node.name


def _value_of(node, names):
    """What a name or an attribute of a module or class is; None of anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value_of(node.value, names)
        if inspect.ismodule(owner) or inspect.isclass(owner):
            return getattr(owner, node.attr, None)
    return None


def _is_missing(node, names):
    owner = _value_of(node.value, names)
    known = inspect.ismodule(owner) or inspect.isclass(owner)
    return known and not hasattr(owner, node.attr)


def _calls_of_inherited_methods(nodes, names):
    """The calls of methods of `self` that a class has from its first base."""
    for node in nodes:
        if not isinstance(node, ast.ClassDef) or not node.bases:
            continue
        base, own = _value_of(node.bases[0], names), {*_bound_by(node.body)}
        for call in ast.walk(node):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    method = getattr(base, name, None)
                    if name not in own and inspect.isfunction(method):
                        yield call, functools.partial(method, None)


def _refused_arguments(call, called):
    """Why a function or class of the package refuses the arguments of a call."""
    function = getattr(called, "func", called)
    if not (getattr(function, "__module__", None) or "").startswith("tfrl"):
        return None
    plain = itertools.takewhile(lambda x: not isinstance(x, ast.Starred), call.args)
    words = {word.arg: None for word in call.keywords if word.arg}
    try:
        inspect.signature(called).bind_partial(*plain, **words)
    except TypeError as error:
        return f"{ast.unparse(call.func)}: {error}"
    return None
