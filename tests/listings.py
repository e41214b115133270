"""Checks programs without running them: only their imports are done."""

import ast
import builtins
import inspect


def faults(code, path, without=()):
    """Returns what a program names that does not exist, with its lines.

    The code is compiled, and its imports are done. Each name has to be bound,
    each attribute of a module or class has to be there, and what the package defines
    has to take the keywords that it is given.

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
    found = []
    for node in nodes:
        fault = None
        if isinstance(node, ast.Name) and node.id not in known:
            fault = node.id
        elif isinstance(node, ast.Attribute) and _is_missing(node, outside):
            fault = ast.unparse(node)
        elif isinstance(node, ast.Call):
            fault = _unknown_arguments(node, outside)
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


def _unknown_arguments(call, names):
    """The keywords that a function or class of the package does not take."""
    called = _value_of(call.func, names)
    if not (getattr(called, "__module__", None) or "").startswith("tfrl"):
        return []
    parameters = inspect.signature(called).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return []
    return sorted({word.arg for word in call.keywords if word.arg} - {*parameters})
