"""What Keras 3 and optimizers of TensorFlow 2 need otherwise."""

from __future__ import annotations

import ast
import re
from typing import Any

from tfrl.migrate import names
from tfrl.migrate.rule import File, argument, method_of, rule, text_in
from tfrl.migrate.scopes import Scope, dotted

_PAGE = "from_tf_agents#changes-in-the-dependencies"
# The layers that take a size, and its argument, which is the first.
_SIZES: dict[str, str] = names.TABLES["sizes"]
_OF_SPECS = {"maximum", "minimum", "shape", "n", "high", "low", "num_values", "size"}
_COUNTS = re.compile(r"action|output|(^|_)(n|num|dim|size)(_|$)")


@rule("integer-sizes", _PAGE, ast.Call)
def integer_sizes(node: ast.Call, file: File) -> None:
    """Writes int(...) around the sizes of layers that are computed from specs.

    Example:
       import tensorflow as tf
      -import tf_agents
      +import tfrl
       n = env.action_spec().maximum - env.action_spec().minimum + 1
      -layers = [tf.keras.layers.Dense(64), tf.keras.layers.Dense(n)]
      +layers = [tf.keras.layers.Dense(64), tf.keras.layers.Dense(int(n))]
    """
    package, _, layer = file.known(_made(node, file)).rpartition(".")
    if package == "keras.layers" and layer in _SIZES:
        size = argument(node, _SIZES[layer], 0)
        if size is not None and _is_computed(size, file.scope, file, ()):
            file.wrap(size, "int(", ")")


def _made(node: ast.Call, file: File) -> ast.AST:
    """Returns what a call makes: its function, or that of a partial without a size."""
    for value, _ in file.scopes.origins(node.func, file.scope):
        if isinstance(value, ast.Call) and len(value.args) == 1:
            is_sized = any(x.arg in _SIZES.values() for x in value.keywords)
            if file.known(value.func) == "functools.partial" and not is_sized:
                return value.args[0]
    return node.func


_Plain = ast.FunctionDef | ast.ClassDef | ast.Constant


def _is_computed(
    node: ast.AST | None, scope: Scope, file: File, seen: tuple[ast.AST, ...]
) -> bool:
    """Whether a number may be one of NumPy: from a spec, a shape, or an argument."""
    if node is None or node in seen or isinstance(node, _Plain):
        return False
    seen = (*seen, node)
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if scope.qualified(called).startswith("numpy."):
            return True
        if called.endswith(("int", "len", "round", "num_elements")):
            return False
        children = [*node.args, node.func]
    if isinstance(node, ast.Attribute) and node.attr in _OF_SPECS:
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        for value, place in file.scopes.origins(node, scope):
            found = scope.find(node.id) if isinstance(node, ast.Name) else []
            if any(x.parameter and x.scope is place for x in found):
                return bool(_COUNTS.search(ast.unparse(node)))
            if value is not node and _is_computed(value, place, file, seen):
                return True
    return any(_is_computed(each, scope, file, seen) for each in children)


_SWITCH = re.compile(
    r"(?:os\.)?(?:environ\[|environ\.setdefault\(|putenv\()"
    r"""["']TF_USE_LEGACY_KERAS["'](?:\]\s*=[^=]|,)"""
)


@rule("legacy-keras", _PAGE, ast.Assign, ast.Expr)
def legacy_switch(node: ast.stmt, file: File) -> None:
    """Deletes the switch to Keras 2, and comments on it.

    Example:
       import os
      -os.environ["TF_USE_LEGACY_KERAS"] = "1"
      -from tf_agents.agents.dqn import dqn_agent
      +from tfrl.agents.dqn import dqn_agent
    """
    if not _SWITCH.match(file.text(node)):
        return
    above, field = file.scopes.above[node]
    block = getattr(above, field)
    is_all = all(_SWITCH.match(file.text(x)) for x in block)
    is_kept = is_all and block[0] is node and not isinstance(above, ast.Module)
    file.delete(node, "keras", "pass" if is_kept else "")


@rule("arguments", "migrate#arguments", ast.Call, ast.Attribute, ast.Constant)
def arguments(node: Any, file: File) -> None:
    """Names and deletes arguments and methods as Keras 3, Gymnasium and NumPy do.

    Example:
       import numpy as np
       import tensorflow as tf
      -import tf_agents
      +import tfrl
      -optimizer = tf.keras.optimizers.Adam(lr=1e-3)
      +optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3)
      -model.fit_generator(batches, workers=4)
      -env = train_env._env.envs[0]
      +model.fit(batches)
      +env = train_env.envs[0]
      -x = np.array(x, copy=False)
      +x = np.array(x)
    """
    if isinstance(node, ast.Call):
        known = file.known(node.func)
        package = known.rpartition(".")[0].removesuffix(".legacy")
        table: dict[str, str] = {}
        for name in (package, known, f".{method_of(node)}"):
            table |= names.TABLES["arguments"].get(name, {})
        _rewrite(node, table, file)
        return
    name = node.attr if isinstance(node, ast.Attribute) else text_in(node)
    table = names.TABLES["methods"]
    inner: Any = getattr(node, "value", None)
    if new := table.get(f"{getattr(inner, 'attr', '')}.{name}"):
        file.edit(file.span(inner.value)[1], file.span(node)[1], f".{new}")
    elif " " in (new := table.get(name, "")):
        file.note(new)
    elif new and isinstance(node, ast.Attribute):
        file.replace_name(node, new)


def _rewrite(node: ast.Call, table: dict[str, str], file: File) -> None:
    """Names, deletes and adds arguments as a table tells."""
    gone = []
    for each in node.keywords if table else ():
        name = each.arg or "**"
        new = table.get(name, table.get(ast.unparse(each), name))
        if " " in new:
            file.note(new)
        elif not new:
            gone.append(each)
        elif new != name:
            start, _ = file.span(each)
            file.edit(start, start + len(name), new)
    file.remove(gone, [*node.args, *node.keywords])
    has_more = gone or any(x.arg is None for x in node.keywords)
    if "+epsilon" in table and not (has_more or argument(node, "epsilon", 3)):
        file.add_argument(node, f"epsilon={table['+epsilon']}")


_ENDINGS: dict[str, str] = names.TABLES["endings"]


@rule("model-files", _PAGE, ast.Call)
def model_files(node: ast.Call, file: File) -> None:
    """Ends the names of Keras's files as Keras 3 asks for.

    Example:
       import tensorflow as tf
      -import tf_agents
      +import tfrl
       model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
      -model.save_weights("weights")
      -model.save(f"models/{number}")
      +model.save_weights("weights.weights.h5")
      +model.save(f"models/{number}.keras")
    """
    package, _, method = file.known(node.func).rpartition(".")
    if package not in ("keras.models", "keras.saving"):
        method = method_of(node)
        if "weights" not in method and not _is_model(node, file):
            return
    path = argument(node, "filepath", int(method == "save_model"))
    end = _ENDINGS.get(method)
    if path is None or end is None:
        return
    last = {_last_text(x) for x, _ in file.scopes.origins(path, file.scope)}
    if any(text.endswith((end, ".h5")) for text in last):
        return
    if "" in last:
        file.note(f"Keras 3 takes a name that ends with {end} here.")
    elif isinstance(path, ast.Constant | ast.JoinedStr):
        quotes = re.findall(r"[\"']+$", file.text(path))[0][:3]
        place = file.span(path)[1] - (3 if len(quotes) == 3 else 1)
        file.edit(place, place, end)
    else:
        file.wrap(path, "", f' + "{end}"')


def _is_model(call: ast.Call, file: File) -> bool:
    """Whether the object of a method is a model of Keras, as far as the text tells."""
    receiver = getattr(call.func, "value", None)
    found = list(file.scopes.origins(receiver, file.scope))
    return receiver is not None and all(
        re.match(r"keras\.(models\.|Model|Seq)", scope.known(getattr(x, "func", x)))
        for x, scope in found
    )


def _last_text(node: ast.AST | None) -> str:
    """Returns how the text ends that an expression makes; "" if that is not known."""
    if isinstance(node, ast.JoinedStr):
        return _last_text(node.values[-1]) or "{}"
    if isinstance(node, ast.BinOp):
        return _last_text(node.right)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("path.join"):
        return _last_text(node.args[-1])
    return text_in(node)


_OLD = re.compile(
    r"(?:sonnet\.optimizers|tensorflow\.(?:compat\.v1\.)?train)\.(\w+?)(?:Optimizer)?"
)


@rule("old-optimizers", "from_acme#networks", ast.Call)
def old_optimizers(node: ast.Call, file: File) -> None:
    """Writes optimizers of Sonnet, and those of TF 1 in loops of one's own, as Keras's.

    Agents take optimizers of TF 1 as they are; Keras's variables do not.

    Example:
       import sonnet as snt
      -from acme.agents.tf import d4pg
      +from tfrl.acme.agents.tf import d4pg
      +from keras.optimizers import Adam
      -agent = d4pg.D4PG(spec, policy_optimizer=snt.optimizers.Adam(1e-4))
      +agent = d4pg.D4PG(spec, policy_optimizer=Adam(1e-4, epsilon=1e-8))
    """
    old = file.known(node.func)
    found = _OLD.fullmatch(old)
    new = names.TABLES["optimizers"].get(found[1]) if found else None
    if new and found and (old.startswith("sonnet.") or _is_applied(file, node)):
        table = names.TABLES["arguments"].get(f"optimizers.{found[1]}", {})
        _rewrite(node, table, file)
        has_tensorflow = file.scope.qualified("tf") == "tensorflow"
        root = "tensorflow.keras" if has_tensorflow else "keras"
        file.replace(node.func, file.written(f"{root}.optimizers.{new}", "tf"))


def _is_applied(file: File, call: ast.Call) -> bool:
    """Whether the program itself applies the optimizer that a call makes."""
    target = dotted(getattr(file.parent, "targets", [None])[0])
    uses = [
        use
        for use, _ in file.scopes.calls.get("apply_gradients", [])
        if target and dotted(use.func) == f"{target}.apply_gradients"
    ]
    has_step = any(x.arg == "global_step" for use in uses for x in use.keywords)
    return bool(uses) and not has_step and getattr(file.parent, "value", 0) is call


_NUMPYS = ("array", "zeros", "ones", "full", "arange", "linspace", "eye", "empty")


@rule("dataclass-defaults", "migrate#dataclasses", ast.AnnAssign)
def dataclass_defaults(node: ast.AnnAssign, file: File) -> None:
    """Makes arrays and other dataclasses for each object of a dataclass.

    Example:
       import dataclasses
       import numpy as np
      -import tf_agents
      +import tfrl
      +from dataclasses import field


       @dataclasses.dataclass
       class Config:
      -    low: np.ndarray = np.zeros(3)
      +    low: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """
    if not isinstance(node.value, ast.Call) or not _is_dataclass(file.parent, file):
        return
    called = node.value.func
    found = [x.value for x in file.scope.find(dotted(called))]
    if file.full_name(called) in [f"numpy.{each}" for each in _NUMPYS] or any(
        _is_dataclass(x, file, mutable=True) for x in found
    ):
        function = file.written("dataclasses.field")
        file.wrap(node.value, f"{function}(default_factory=lambda: ", ")")


def _is_dataclass(node: ast.AST | None, file: File, *, mutable: bool = False) -> bool:
    """Whether a definition is a dataclass; perhaps only of one that has no hash."""
    for each in getattr(node, "decorator_list", ()):
        called = getattr(each, "func", each)
        if file.scopes.module.qualified(dotted(called)) == "dataclasses.dataclass":
            words = {x.arg for x in getattr(each, "keywords", ())}
            return not (mutable and words & {"frozen", "eq", "unsafe_hash"})
    return False
