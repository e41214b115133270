"""Names of libraries: packages that are renamed, names that moved or are gone."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import libcst as cst

from tfrl.migrate import names
from tfrl.migrate.rule import File, Rule, argument, code, text_in, text_of

# The imports that keep the name by which a program uses a package.
_KEPT = {
    "gym": "gymnasium as gym",
    "tf_keras": "keras as tf_keras",
}


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
    nodes = (cst.Import, cst.ImportFrom, cst.Name)
    table: ClassVar[dict[str, str]] = {}

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if isinstance(original, cst.Name):
            return self._name(original, updated, file)
        if isinstance(original, cst.ImportFrom):
            return self._import_from(updated, file)
        return self._import(updated, file)

    def _target(self, name: str, file: File) -> str:
        """Returns the full name to import for one."""
        if name.partition(".")[0] in file.own:
            return name
        if not self.table:
            return names.renamed(name)
        return names.moved(name, self.table, is_exact=False) or name

    def _name(self, original: cst.Name, updated: cst.Name, file: File) -> Any:
        """Renames a package where it is used, if an import binds its own name."""
        parent = file.above[-1]
        is_attribute = isinstance(parent, cst.Attribute) and parent.attr is original
        is_key = isinstance(parent, cst.Arg) and parent.keyword is original
        if is_attribute or is_key or original.value not in ("tf_agents", "acme"):
            return updated
        if file.full_name(original) != original.value:
            return updated
        return cst.parse_expression(names.renamed(original.value))

    def _import(self, updated: cst.Import, file: File) -> Any:
        aliases: list[cst.ImportAlias] = []
        lines = []
        for alias in updated.names:
            old = text_of(alias.name)
            new = self._target(old, file)
            root = old.partition(".")[0]
            if new == old:
                aliases.append(alias)
            elif alias.asname:
                aliases += _statement(f"import {new} as {alias.evaluated_alias}").names
            elif root == "reverb":
                lines.append(_statement("from tfrl import replay_service as reverb"))
            elif root in _KEPT:
                first = f"{new}, " if "." in old else ""
                aliases += _statement(f"import {first}{_KEPT[root]}").names
            else:
                aliases += _statement(f"import {new}").names
        if aliases == list(updated.names):
            return updated
        if aliases:
            commas = [x.with_changes(comma=cst.MaybeSentinel.DEFAULT) for x in aliases]
            lines.insert(0, updated.with_changes(names=commas))
        if len(lines) == 1:
            return lines[0].with_changes(semicolon=updated.semicolon)
        return cst.FlattenSentinel(lines)

    def _import_from(self, updated: cst.ImportFrom, file: File) -> Any:
        old = text_of(updated.module)
        if updated.relative or not old:
            return updated
        if isinstance(updated.names, cst.ImportStar):
            return self._with_module(updated, old, self._target(old, file))
        groups: dict[str, list[cst.ImportAlias]] = {}
        for alias in updated.names:
            name = alias.evaluated_name
            module, _, last = self._target(f"{old}.{name}", file).rpartition(".")
            if last != name:
                alias = alias.with_changes(
                    name=cst.Name(last),
                    asname=alias.asname
                    or _statement(f"import x as {name}").names[0].asname,
                )
            groups.setdefault(module, []).append(alias)
        (module, aliases), *rest = groups.items()
        if rest and not updated.lpar:
            aliases[-1] = aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        if aliases != list(updated.names):
            updated = updated.with_changes(names=aliases)
        if not rest:
            return self._with_module(updated, old, module)
        first = self._with_module(updated, old, names.renamed(module))
        return cst.FlattenSentinel([first, *(_import_of(*each) for each in rest)])

    def _with_module(self, updated: Any, old: str, new: str) -> Any:
        if new == old:
            return updated
        return updated.with_changes(module=cst.parse_expression(new))


class MovedNames(Packages):
    """Gives names that have another place the new one, in imports and in use."""

    nodes = (cst.Import, cst.ImportFrom, cst.Attribute)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if not isinstance(original, cst.Attribute):
            return super().leave(original, updated, file)
        old = file.full_name(original)
        new = names.moved(old, self.table, is_exact=True) if old else None
        return updated if new is None else file.written(new, text_of(original))


def _import_of(module: str, aliases: list[cst.ImportAlias]) -> Any:
    plain = (x.with_changes(comma=cst.MaybeSentinel.DEFAULT) for x in aliases)
    return _statement(
        f"from {names.renamed(module)} import {', '.join(map(code, plain))}"
    )


def _statement(text: str) -> Any:
    return cst.parse_statement(text).body[0]


_OF_ACME = "bc bcq crr d4pg ddpg dmpo dqfd dqn impala iqn mcts mpo r2d2 r2d3 svg0_prior"


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
    table: ClassVar[dict[str, str]] = {
        **names.moved_names(),
        **{f"tfrl.acme.{x}": f"tfrl.acme.tf.{x}" for x in ("networks", "losses")},
        **{
            f"tfrl.acme.agents.{x}": f"tfrl.acme.agents.tf.{x}"
            for x in _OF_ACME.split()
        },
    }


def new_place(name: str) -> str:
    """Returns the full name with tfrl for one of the libraries."""
    return names.renamed(names.moved(name, OldPlaces.table, is_exact=False) or name)


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
    """Names of TensorFlow 1 that tf.compat.v1 has.

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
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        called = file.full_name(original.func) or text_of(original.func)
        given = argument(updated, "name", 0)
        if called not in ("importlib.import_module", "__import__") or given is None:
            return updated
        old = text_in(given.value)
        new = new_place(old)
        if new == old or old.partition(".")[0] in file.own:
            return updated
        literal = given.value
        return updated.with_deep_changes(literal, value=literal.value.replace(old, new))


class AbsentNames(Rule):
    """Says above a line what to use instead of a name that there is not.

    Example:
      +# tfrl migrate: tfrl.policies.py_tf_policy: TF-Agents has it, tfrl does not; instead: tfrl.policies.py_tf_eager_policy.
      -from tf_agents.policies import py_tf_policy
      +from tfrl.policies import py_tf_policy
    """  # noqa: E501

    name = "absent-names"
    page = "from_tf_agents#what-is-not-here"
    nodes = (cst.Import, cst.ImportFrom, cst.Attribute, cst.FunctionDef)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if isinstance(original, cst.FunctionDef):
            name = original.name.value
            bases = map(file.scope.known, file.bases)
            is_ours = any(re.fullmatch(r"tfrl\..*\bPyEnvironment", x) for x in bases)
            if is_ours and name in ("reset", "step"):
                file.note(
                    self.name, f"PyEnvironment has its own {name}: write _{name}."
                )
            return updated
        for name in self._used(original, file):
            root = name.partition(".")[0]
            package = names.TABLES["installed_apart"].get(root)
            if package and not isinstance(original, cst.Attribute):
                file.note(self.name, f"tfrl brings no {root}: pip install {package}.")
            if root == "keras" and root in file.own:
                file.note(
                    self.name, "this module hides Keras from TensorFlow: rename it."
                )
            text = "" if name.partition(".")[0] in file.own else _absence(name)
            if isinstance(original, cst.Attribute):
                # It may be an attribute of a class; and its import is remarked on.
                root = file.scope.qualified(text_of(original).partition(".")[0])
                text = "" if "tfrl has no" in text or _absence(root) else text
            if text:
                file.remark(self.name, text)
        return updated

    def _used(self, node: Any, file: File) -> list[str]:
        """Returns the full names that an import or an expression uses."""
        if isinstance(node, cst.Attribute):
            is_part = isinstance(file.above[-1], cst.Attribute)
            return [] if is_part else [file.full_name(node)]
        if isinstance(node, cst.Import):
            return [text_of(alias.name) for alias in node.names]
        if node.relative or isinstance(node.names, cst.ImportStar):
            return [] if node.relative else [text_of(node.module)]
        return [f"{text_of(node.module)}.{x.evaluated_name}" for x in node.names]


def _absence(name: str) -> str:
    """Returns what to write instead of a name that there is not; "" for others."""
    known = names.canonical(name)
    is_ours = known.partition(".")[0] == "tfrl"
    return (is_ours and names.explanation(new_place(name))) or names.remark(known) or ""
