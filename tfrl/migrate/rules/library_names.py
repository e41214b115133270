"""Names of libraries: packages that are renamed, names that moved or are gone."""

from __future__ import annotations

import ast
import re
from typing import Any, ClassVar

from tfrl.migrate import names
from tfrl.migrate.rule import File, Rule, argument, text_in
from tfrl.migrate.scopes import dotted

# The imports that keep the name by which a program uses a package.
_KEPT = {
    "gym": "gymnasium as gym",
    "tf_keras": "keras as tf_keras",
}


class MovedNames(Rule):
    """Gives names their new place; in imports `Packages` does it."""

    nodes = (ast.Attribute,)
    table: ClassVar[dict[str, str]]

    def visit(self, node: ast.Attribute, file: File) -> None:
        """See the base class."""
        if old := file.full_name(node):
            new = names.moved(old, self.table, is_exact=True)
            if new is not None:
                file.replace(node, file.written(new, dotted(node)))


class OldPlaces(MovedNames):
    """Names that TF-Agents has moved since release 0.3, and Acme since 0.1.

    Example:
      -from tf_agents.environments import suite_gym, time_step as ts
      +from tfrl.environments import suite_gym
      +from tfrl.trajectories import time_step as ts
      -from tf_agents.agents.dqn import dqn_agent
      +from tfrl.agents.dqn import dqn_agent
      +from tfrl.utils.common import element_wise_squared_loss
      -loss = dqn_agent.element_wise_squared_loss
      +loss = element_wise_squared_loss
    """

    name = "moved-names"
    page = "from_tf_agents#names-that-are-gone"
    table: ClassVar[dict[str, str]] = {**names.moved_names(), **names.TABLES["acme"]}


class KerasNames(MovedNames):
    """Names that only Keras 2 has.

    Example:
       import tensorflow as tf
      -import tf_agents
      +import tfrl
      -optimizer = tf.keras.optimizers.legacy.Adam(1e-3)
      +optimizer = tf.keras.optimizers.Adam(1e-3)
      -huber = tf.keras.losses.Huber(reduction=tf.losses.Reduction.NONE)
      +huber = tf.keras.losses.Huber(reduction="none")
      -squared = tf.losses.mean_squared_error
      +squared = tf.losses.MSE
    """

    name = "keras-names"
    page = "from_tf_agents#changes-in-the-dependencies"
    table = names.TABLES["keras"]


class OldTensorFlow(MovedNames):
    """Names of TensorFlow 1 that TensorFlow 2 has in another place.

    Example:
       import tensorflow as tf
      -import tf_agents
      +import tfrl
      -tf.enable_v2_behavior()
      +tf.compat.v1.enable_v2_behavior()
      -optimizer = tf.train.AdamOptimizer(1e-3)
      +optimizer = tf.compat.v1.train.AdamOptimizer(1e-3)
    """

    name = "tensorflow-1-names"
    page = "from_tf_agents#changes-in-the-dependencies"
    table = names.TABLES["tensorflow"]


class NumpyNames(MovedNames):
    """Names that are gone from NumPy.

    Example:
       import numpy as np
      -import tf_agents
      +import tfrl
      -x = np.zeros(3, np.float) + np.product((2, 3)) + np.Inf
      +x = np.zeros(3, float) + np.prod((2, 3)) + np.inf
    """

    name = "numpy-names"
    page = "migrate#numpy"
    table = names.TABLES["numpy"]


class GymNames(MovedNames):
    """Names that Gymnasium has renamed.

    Example:
      -import gym, tf_agents
      +import gymnasium as gym, tfrl
      -env = gym.wrappers.FrameStack(env, 4)
      +env = gym.wrappers.FrameStackObservation(env, 4)
    """

    name = "gym-names"
    page = "migrate#gym"
    table = names.TABLES["gym"]


class GinNames(MovedNames):
    """The module gin.tf, which needs tf.estimator, becomes gin.

    Example:
      -import gin.tf
      +import gin
      -import tf_agents
      +import tfrl
    """

    name = "gin"
    page = "from_tf_agents#gin"
    table: ClassVar[dict[str, str]] = {"gin.tf": "gin"}


MOVED = (
    OldPlaces(),
    GymNames(),
    GinNames(),
    KerasNames(),
    OldTensorFlow(),
    NumpyNames(),
)


class Packages(Rule):
    """Renames the packages in imports, and where a program uses them by their names.

    Example:
      -import gym, os
      -import reverb
      +import gymnasium as gym, os
      +from tfrl import replay_service as reverb
      -from acme import specs
      +from tfrl.acme import specs
      -import tf_agents
      +import tfrl
    """

    name = "packages"
    page = "from_tf_agents"
    nodes = (ast.Import, ast.ImportFrom, ast.Name)

    def visit(self, node: Any, file: File) -> None:
        """See the base class."""
        if isinstance(node, ast.Import):
            self._import(node, file)
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                self._import_from(node, file)
        elif node.id in ("tf_agents", "acme") and file.full_name(node) == node.id:
            file.replace(node, names.renamed(node.id))

    def _target(self, name: str, file: File) -> str:
        """Returns the full name to import for one."""
        if name.partition(".")[0] in file.own:
            return name
        for rule in MOVED:
            if new := names.moved(name, rule.table, is_exact=False):
                name, file.rule = new, rule
        if (new := names.renamed(name)) != name:
            file.rule = self
        return new

    def _import(self, node: ast.Import, file: File) -> None:
        parts, lines = [], []
        for alias in node.names:
            root = alias.name.partition(".")[0]
            new = self._target(alias.name, file)
            if new == alias.name or alias.asname:
                as_name = f" as {alias.asname}" if alias.asname else ""
                parts.append(f"{new}{as_name}")
            elif root == "reverb":
                lines.append("from tfrl import replay_service as reverb")
            else:
                parts += [new] if "." in alias.name or root not in _KEPT else []
                parts += [_KEPT[root]] if root in _KEPT else []
        first = f"import {', '.join(parts)}" if parts else lines.pop(0)
        if [*parts, *lines] != [ast.unparse(alias) for alias in node.names]:
            file.replace(node, first)
            for line in lines:
                file.below(node, line)

    def _import_from(self, node: ast.ImportFrom, file: File) -> None:
        old = node.module or ""
        groups: dict[str, list[tuple[ast.alias, str]]] = {}
        for alias in node.names:
            if alias.name == "*":
                module, text = self._target(old, file), "*"
            else:
                full = self._target(f"{old}.{alias.name}", file)
                module, _, text = full.rpartition(".")
                if alias.asname or text != alias.name:
                    text += f" as {alias.asname or alias.name}"
            groups.setdefault(module, []).append((alias, text))
        (module, first), *rest = groups.items()
        if module != old:
            start, end = file.span(node)
            found = re.compile(rf"from[\s\\]+({re.escape(old)})\b").match(
                file.source, start, end
            )
            if found is None:
                return
            file.edit(*found.span(1), names.renamed(module))
        for alias, text in first:
            if text != ast.unparse(alias):
                file.replace(alias, text)
        if gone := [alias for _, group in rest for alias, _ in group]:
            file.remove(gone, node.names)
        for module, group in rest:
            texts = ", ".join(text for _, text in group)
            file.below(node, f"from {names.renamed(module)} import {texts}")


def new_place(name: str) -> str:
    """Returns the full name with tfrl for one of the libraries."""
    return names.renamed(names.moved(name, OldPlaces.table, is_exact=False) or name)


class ModuleStrings(Rule):
    """Renames modules in strings that are imported.

    Example:
       import importlib
      -import tf_agents
      +import tfrl
      -dqn = importlib.import_module("tf_agents.agents.dqn.dqn_agent")
      +dqn = importlib.import_module("tfrl.agents.dqn.dqn_agent")
    """

    name = "module-strings"
    page = "from_tf_agents"
    nodes = (ast.Call,)

    def visit(self, node: ast.Call, file: File) -> None:
        """See the base class."""
        called = file.full_name(node.func) or dotted(node.func)
        given = argument(node, "name", 0)
        old = text_in(given)
        is_own = old.partition(".")[0] in file.own
        is_import = called in ("importlib.import_module", "__import__")
        if is_import and given and not is_own and new_place(old) != old:
            file.replace(given, file.text(given).replace(old, new_place(old)))


class AbsentNames(Rule):
    """Says above a line what to use instead of a name that there is not.

    Example:
      +# tfrl migrate: tfrl.policies.py_tf_policy: TF-Agents has it, tfrl does not; instead: tfrl.policies.py_tf_eager_policy.
      -from tf_agents.policies import py_tf_policy
      +from tfrl.policies import py_tf_policy
    """  # noqa: E501

    name = "absent-names"
    page = "from_tf_agents#what-is-not-here"
    nodes = (ast.Import, ast.ImportFrom, ast.Attribute, ast.FunctionDef)

    def visit(self, node: Any, file: File) -> None:
        """See the base class."""
        if isinstance(node, ast.FunctionDef):
            bases = [file.scope.known(x) for x in getattr(file.parent, "bases", ())]
            is_ours = any(re.fullmatch(r"tfrl\..*\bPyEnvironment", x) for x in bases)
            if is_ours and node.name in ("reset", "step"):
                file.note(f"PyEnvironment has its own {node.name}: write _{node.name}.")
        elif isinstance(node, ast.Attribute):
            if not isinstance(file.parent, ast.Attribute):
                self._attribute(node, file)
        elif not getattr(node, "level", 0):
            module = getattr(node, "module", None)
            for alias in node.names:
                name = f"{module}.{alias.name}" if module else alias.name
                self._imported(name.removesuffix(".*"), file)

    def _attribute(self, node: ast.Attribute, file: File) -> None:
        """Remarks on a name, unless its import is remarked on."""
        text = _absence(file.full_name(node))
        root = file.scope.qualified(dotted(node).partition(".")[0])
        # It may be an attribute of a class.
        if text and "tfrl has no" not in text and not _absence(root):
            file.remark(text)

    def _imported(self, name: str, file: File) -> None:
        root = name.partition(".")[0]
        if root in file.own:
            if root == "keras":
                file.note("this module hides Keras from TensorFlow: rename it.")
            return
        if package := names.TABLES["installed_apart"].get(root):
            file.note(f"tfrl brings no {root}: pip install {package}.")
        if text := _absence(name):
            file.remark(text)


def _absence(name: str) -> str:
    """Returns what to write instead of a name that there is not; "" for others."""
    known = names.canonical(name)
    is_ours = known.partition(".")[0] == "tfrl"
    return (is_ours and names.explanation(new_place(name))) or names.remark(known) or ""
