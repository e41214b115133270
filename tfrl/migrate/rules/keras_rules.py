"""What Keras 3 and optimizers of TensorFlow 2 need otherwise."""

from __future__ import annotations

import ast
import re
from typing import Any

import libcst as cst

from tfrl.migrate import names
from tfrl.migrate.rule import (
    File,
    Removed,
    Rule,
    argument,
    arguments,
    code,
    method_of,
    text_in,
)
from tfrl.migrate.scopes import Scope

_PAGE = "from_tf_agents#changes-in-the-dependencies"
# The first argument of layers that take a size, and the layers.
_SIZES = {
    layer: argument
    for argument, layers in {
        "units": "Dense LSTM GRU SimpleRNN LSTMCell GRUCell SimpleRNNCell",
        "filters": "Conv1D Conv2D Conv3D",
        "input_dim": "Embedding",
    }.items()
    for layer in layers.split()
}
_OF_SPECS = {"maximum", "minimum", "shape", "n", "high", "low", "num_values", "size"}
_COUNTS = re.compile(r"action|output|(^|_)(n|num|dim|size)(_|$)")


class IntegerSizes(Rule):
    """Writes int(...) around the sizes of layers that are computed from specs.

    Example:
       import tensorflow as tf
      -import tf_agents
      +import tfrl
       n = env.action_spec().maximum - env.action_spec().minimum + 1
      -layers = [tf.keras.layers.Dense(64), tf.keras.layers.Dense(n)]
      +layers = [tf.keras.layers.Dense(64), tf.keras.layers.Dense(int(n))]
    """

    name = "integer-sizes"
    page = _PAGE
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        package, _, layer = file.known(original.func).rpartition(".")
        if package != "keras.layers" or layer not in _SIZES:
            return updated
        before = argument(original, _SIZES[layer], 0)
        now = argument(updated, _SIZES[layer], 0)
        if before is None or now is None:
            return updated
        if not _is_computed(file.expression(before.value), file.scope, file, ()):
            return updated
        return updated.with_deep_changes(
            now, value=cst.Call(cst.Name("int"), [cst.Arg(now.value)])
        )


_Plain = ast.FunctionDef | ast.ClassDef | ast.Constant


def _is_computed(
    node: ast.AST | None, scope: Scope, file: File, seen: tuple[ast.AST, ...]
) -> bool:
    """Whether a number may be one of NumPy: from a spec, a shape, or an argument."""
    if node is None or node in seen or isinstance(node, _Plain):
        return False
    seen = (*seen, node)
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if scope.qualified(called).startswith("numpy."):
            return True
        if called.endswith(("int", "len", "round", "num_elements")):
            return False
        return any(_is_computed(x, scope, file, seen) for x in (*node.args, node.func))
    if isinstance(node, ast.Attribute) and node.attr in _OF_SPECS:
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        for value, place in file.scopes.origins(node, scope):
            if _is_unknown_argument(node, scope, place):
                return bool(_COUNTS.search(ast.unparse(node)))
            if value is not node and _is_computed(value, place, file, seen):
                return True
        return isinstance(node, ast.Attribute) and _is_computed(
            node.value, scope, file, seen
        )
    children = ast.iter_child_nodes(node)
    return any(_is_computed(each, scope, file, seen) for each in children)


def _is_unknown_argument(node: ast.AST, scope: Scope, place: Scope) -> bool:
    """Whether a name is a parameter of a function that the file does not call."""
    found = scope.find(node.id) if isinstance(node, ast.Name) else []
    return any(binding.parameter and binding.scope is place for binding in found)


_SWITCH = re.compile(
    r"(?:os\.)?(?:environ\[|environ\.setdefault\(|putenv\()"
    r"""["']TF_USE_LEGACY_KERAS["'](?:\]\s*=[^=]|,)"""
)


class LegacySwitch(Rule):
    """Deletes the switch to Keras 2.

    Example:
       import os
      -os.environ["TF_USE_LEGACY_KERAS"] = "1"
      -from tf_agents.agents.dqn import dqn_agent
      +from tfrl.agents.dqn import dqn_agent
    """

    name = "legacy-keras"
    page = _PAGE
    nodes = (cst.Assign, cst.Expr)

    def leave(self, original: Any, updated: Any, file: File) -> Any:  # noqa: ARG002
        """See the base class."""
        return Removed() if _SWITCH.match(code(original)) else updated


class Arguments(Rule):
    """Names and deletes arguments and methods as Keras 3, Gymnasium and NumPy do.

    Example:
       import numpy as np
       import tensorflow as tf
      -import tf_agents
      +import tfrl
      -optimizer = tf.keras.optimizers.Adam(lr=1e-3)
      +optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3)
      -model.fit_generator(batches, workers=4)
      +model.fit(batches)
      -x = np.array(x, copy=False)
      +x = np.array(x)
    """

    name = "arguments"
    page = "migrate#arguments"
    nodes = (cst.Call, cst.Attribute, cst.SimpleString)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if isinstance(original, cst.Call):
            return self._call(original, updated, file)
        is_text = isinstance(original, cst.SimpleString)
        name = text_in(original) if is_text else original.attr.value
        new = names.TABLES["methods"].get(name, "")
        if " " in new:
            file.note(self.name, new)
        elif new:
            return updated.with_changes(attr=cst.Name(new))
        return updated

    def _call(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        known = file.known(original.func)
        package = known.rpartition(".")[0].removesuffix(".legacy")
        table: dict[str, str] = {}
        for name in (package, known, f".{method_of(updated)}"):
            table |= names.TABLES["arguments"].get(name, {})
        kept = []
        for each in updated.args:
            name = each.keyword.value if each.keyword else ""
            new = table.get(name, table.get(f"{name}={code(each.value)}", name))
            if " " in new:
                file.note(self.name, new)
            elif new != name:
                each = each.with_changes(keyword=cst.Name(new or "_"))
            kept += [each] if new or not name else []
        if len(kept) < len(updated.args) and kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(args=kept) if kept != [*updated.args] else updated


_ENDINGS = {
    "save": ".keras",
    "load_model": ".keras",
    "save_model": ".keras",
    "save_weights": ".weights.h5",
    "load_weights": ".weights.h5",
}


class ModelFiles(Rule):
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

    name = "model-files"
    page = _PAGE
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        method = method_of(original)
        known = file.known(original.func)
        is_function = known.startswith(("keras.models.", "keras.saving."))
        method = known.rpartition(".")[2] if is_function else method
        if method not in _ENDINGS or not (
            is_function or "weights" in method or _is_model(original, file)
        ):
            return updated
        given = argument(updated, "filepath", int(method == "save_model"))
        if given is None:
            return updated
        end = _ENDINGS[method]
        found = file.scopes.origins(file.expression(given.value), file.scope)
        last = {_last_text(x) for x, _ in found}
        if any(text.endswith((end, ".h5")) for text in last):
            return updated
        if "" in last:
            file.note(self.name, f"Keras 3 takes a name that ends with {end} here.")
            return updated
        return updated.with_deep_changes(given, value=_longer(given.value, end))


def _is_model(call: cst.Call, file: File) -> bool:
    """Whether the object of a method is a model of Keras, as far as the text tells."""
    receiver = file.expression(cst.ensure_type(call.func, cst.Attribute).value)
    found = list(file.scopes.origins(receiver, file.scope))
    return bool(found) and all(
        scope.known(getattr(x, "func", x)).startswith(
            ("keras.models.", "keras.M", "keras.S")
        )
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
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _longer(text: cst.BaseExpression, end: str) -> cst.BaseExpression:
    """Returns an expression for a text with another end."""
    written = code(text)
    if isinstance(text, cst.SimpleString | cst.FormattedString):
        quotes = written[-3:] if written[-3:] in ('"""', "'''") else written[-1]
        return cst.parse_expression(f"{written.removesuffix(quotes)}{end}{quotes}")
    return cst.parse_expression(f'{written} + "{end}"')


_OLD = re.compile(
    r"(?:sonnet\.optimizers|tensorflow\.(?:compat\.v1\.)?train)\.(\w+?)(?:Optimizer)?"
)
# For the optimizers of TF 1 and Sonnet: Keras's class, its names of their arguments in
# order, and the argument that differs by default.
_KERAS = {
    "Adam": ("Adam", "learning_rate beta_1 beta_2 epsilon", "epsilon=1e-8"),
    "RMSProp": ("RMSprop", "learning_rate rho momentum epsilon", "epsilon=1e-10"),
    "Momentum": ("SGD", "learning_rate momentum", ""),
    "GradientDescent": ("SGD", "learning_rate", ""),
    "SGD": ("SGD", "learning_rate", ""),
}
_ARGUMENTS = {
    "beta1": "beta_1",
    "beta2": "beta_2",
    "decay": "rho",
    "use_nesterov": "nesterov",
}


class OldOptimizers(Rule):
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

    name = "old-optimizers"
    page = "from_acme#networks"
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        old = file.known(original.func)
        found = _OLD.fullmatch(old)
        if not found or found[1] not in _KERAS:
            return updated
        if not (old.startswith("sonnet.") or _is_applied(file, original)):
            return updated
        new, order, default = _KERAS[found[1]]
        args, known = [], order.split()
        given = known[: sum(not x.keyword for x in updated.args)]
        for each in updated.args:
            if each.keyword:
                given.append(_ARGUMENTS.get(each.keyword.value, each.keyword.value))
                each = each.with_changes(keyword=cst.Name(given[-1]))
            args.append(each)
        is_known = set(given) <= {*known, "nesterov", "name"}
        if len(given) < len(args) or not is_known or any(x.star for x in args):
            file.note(self.name, f"{old} is {new} of Keras; its arguments differ.")
            return updated
        if default.partition("=")[0] not in (*given, ""):
            args += arguments(default)
        has_tensorflow = file.scope.qualified("tf") == "tensorflow"
        root = "tensorflow.keras" if has_tensorflow else "keras"
        function = file.written(f"{root}.optimizers.{new}", "tf")
        return updated.with_changes(func=function, args=args)


def _is_applied(file: File, call: cst.Call) -> bool:
    """Whether the program itself applies the optimizer that a call makes."""
    parent = file.above[-1]
    if not isinstance(parent, cst.Assign) or parent.value is not call:
        return False
    name = code(parent.targets[0].target)
    uses = [
        call
        for call, _ in file.scopes.calls.get("apply_gradients", [])
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == name
    ]
    has_step = any(x.arg == "global_step" for call in uses for x in call.keywords)
    return bool(uses) and not has_step
