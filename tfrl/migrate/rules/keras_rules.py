"""What Keras 3 and optimizers of TensorFlow 2 need otherwise."""

from __future__ import annotations

import ast
import re
from typing import Any

import libcst as cst

from tfrl.migrate.rule import File, Removed, Rule, argument, code, text_in
from tfrl.migrate.scopes import Scope

_PAGE = "from_tf_agents#changes-in-the-dependencies"
# The first argument of layers that take a size, by the canonical name of the layer.
_SIZES = {
    **dict.fromkeys(("Dense", "LSTM", "GRU", "SimpleRNN", "LSTMCell"), "units"),
    **dict.fromkeys(("GRUCell", "SimpleRNNCell"), "units"),
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), "filters"),
    **dict.fromkeys(("Embedding",), "input_dim"),
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


def _is_computed(
    node: ast.AST | None, scope: Scope, file: File, seen: tuple[ast.AST, ...]
) -> bool:
    """Whether a number may be one of NumPy: from a spec, a shape, or an argument."""
    if node is None or node in seen:
        return False
    seen = (*seen, node)
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        is_array = scope.qualified(called).startswith("numpy.")
        inner = (
            []
            if called.endswith(("int", "len", "round", "num_elements"))
            else [*node.args, node.func]
        )
        return is_array or any(_is_computed(x, scope, file, seen) for x in inner)
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
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Constant):
        return False
    children = ast.iter_child_nodes(node)
    return any(_is_computed(each, scope, file, seen) for each in children)


def _is_unknown_argument(node: ast.AST, scope: Scope, place: Scope) -> bool:
    """Whether a name is a parameter of a function that the file does not call."""
    found = scope.find(node.id) if isinstance(node, ast.Name) else []
    return any(binding.parameter and binding.scope is place for binding in found)


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

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        key = None
        if isinstance(original, cst.Assign) and len(original.targets) == 1:
            target = original.targets[0].target
            is_item = isinstance(target, cst.Subscript) and len(target.slice) == 1
            if is_item and file.full_name(target.value) == "os.environ":
                key = getattr(target.slice[0].slice, "value", None)
        elif isinstance(original, cst.Expr) and isinstance(original.value, cst.Call):
            called = file.full_name(original.value.func)
            first = argument(original.value, "key", 0)
            if called in ("os.environ.setdefault", "os.putenv") and first:
                key = first.value
        return Removed() if text_in(key) == "TF_USE_LEGACY_KERAS" else updated


class OptimizerArguments(Rule):
    """Names the learning rate of an optimizer as Keras 3 does.

    Example:
       import tensorflow as tf
      -import tf_agents
      +import tfrl
      -optimizer = tf.keras.optimizers.Adam(lr=1e-3)
      +optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3)
    """

    name = "optimizer-arguments"
    page = _PAGE
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        if not re.fullmatch(
            r"keras\.optimizers\.(legacy\.)?[A-Z]\w+", file.known(original.func)
        ):
            return updated
        if argument(updated, "decay"):
            file.note(
                self.name,
                "Keras 3 ignores decay=: give a schedule of keras.optimizers.schedules "
                "as learning_rate.",
            )
        rate = argument(updated, "lr")
        if rate is None or rate.keyword is None:
            return updated
        return updated.with_deep_changes(rate.keyword, value="learning_rate")


# Optimizers of tf.compat.v1 and of Sonnet: Keras's class, the names of its arguments
# by those of the old one in their order, and the arguments that differ by default.
_ADAM = "learning_rate beta_1=beta1 beta_2=beta2 epsilon", {"epsilon": "1e-8"}
_OLD = {
    "tensorflow.compat.v1.train.AdamOptimizer": ("Adam", *_ADAM),
    "tensorflow.compat.v1.train.GradientDescentOptimizer": ("SGD", "learning_rate", {}),
    "tensorflow.compat.v1.train.MomentumOptimizer": (
        "SGD",
        "learning_rate momentum use_locking name nesterov=use_nesterov",
        {},
    ),
    "tensorflow.compat.v1.train.RMSPropOptimizer": (
        "RMSprop",
        "learning_rate rho=decay momentum epsilon",
        {"epsilon": "1e-10"},
    ),
    "sonnet.optimizers.Adam": ("Adam", *_ADAM),
    "sonnet.optimizers.RMSProp": (
        "RMSprop",
        "learning_rate rho=decay momentum epsilon",
        {"epsilon": "1e-10"},
    ),
    "sonnet.optimizers.SGD": ("SGD", "learning_rate", {}),
    "sonnet.optimizers.Momentum": (
        "SGD",
        "learning_rate momentum nesterov=use_nesterov",
        {},
    ),
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
        old = old.replace("tensorflow.train.", "tensorflow.compat.v1.train.")
        if old not in _OLD or not (
            old.startswith("sonnet.") or _is_applied(file, original)
        ):
            return updated
        new, known, defaults = _OLD[old]
        names = dict(
            reversed(each.partition("=")[::2]) if "=" in each else (each, each)
            for each in known.split()
        )
        given = {}
        for place, each in enumerate(updated.args):
            name = each.keyword.value if each.keyword else ""
            if each.star or (not name and place >= len(names)):
                file.note(self.name, f"{old} is {new} of Keras; its arguments differ.")
                return updated
            given[names.get(name, name) or [*names.values()][place]] = each
        unknown = given.keys() - set(names.values()) - {"name"}
        if unknown or "use_locking" in given:
            file.note(self.name, f"{old} is {new} of Keras, without {unknown}.")
            return updated
        args = [
            each.with_changes(keyword=cst.Name(name)) if each.keyword else each
            for name, each in given.items()
        ]
        if args and not isinstance(args[-1].comma, cst.Comma):
            args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        for name, value in defaults.items():
            if name not in given:
                made = cst.parse_expression(f"f({name}={value})")
                args.append(made.args[0])
        has_tensorflow = file.full_name("tf") == "tensorflow"
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
