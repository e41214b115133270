"""Programs that call environments of gym."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from tfrl.migrate import names
from tfrl.migrate.rule import File, Rule, arguments, code, method_of, text_of
from tfrl.migrate.rules import gym_values

# What an environment has in its wrappers, too.
_OF_WRAPPERS = set(names.TABLES["of_wrappers"].split())


class Calls(Rule):
    """Unpacks what Gymnasium's reset and step return.

    Example:
      -import gym, tf_agents
      +import gymnasium as gym, tfrl
       env = gym.make("CartPole-v1")
      -obs = env.reset()
      +obs, _ = env.reset()
       done = False
       while not done:
      -    obs, reward, done, info = env.step(0)
      +    obs, reward, terminated, truncated, info = env.step(0)
      +    done = terminated or truncated
    """

    name = "gym-calls"
    page = gym_values.PAGE
    nodes = (cst.Assign, cst.Call, cst.Expr, cst.Attribute)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if isinstance(original, cst.Call):
            return self._call(original, updated, file)
        if isinstance(original, cst.Attribute):
            return self._attribute(original, updated, file)
        if isinstance(original, cst.Expr):
            return self._seed(original, updated, file)
        target = updated.targets[0].target
        elements = target.elements if isinstance(target, cst.Tuple) else ()
        if gym_values.is_method(original.value, "reset", file):
            return self._reset(updated, elements, file)
        if len(elements) == 4 and method_of(original.value) == "step":
            return self._step(original, updated, file)
        if not elements and gym_values.is_method(original.value, "step", file):
            file.note(
                self.name,
                f"{code(target)} has five values: terminated and truncated, not done.",
            )
        return updated

    def _reset(self, updated: cst.Assign, elements: Any, file: File) -> Any:
        """Assigns the observation of a reset."""
        target = updated.targets[0].target
        if len(elements) == 2:
            second = code(elements[1].value)
            if second != "_" and "info" not in second:
                file.note(self.name, f"{second} is the info of Gymnasium's reset here.")
            return updated
        if elements or len(updated.targets) > 1:
            return updated.with_changes(value=_first(updated.value))
        pair = gym_values.tuple_of([target, cst.Name("_")])
        return updated.with_changes(targets=[cst.AssignTarget(pair)])

    def _step(self, original: cst.Assign, updated: cst.Assign, file: File) -> Any:
        """Writes five targets for four, and the old flag after them."""
        if not gym_values.is_method(original.value, "step", file):
            receiver = original.value.func.value
            found = file.scopes.origins(file.expression(receiver), file.scope)
            if any(x is None or isinstance(x, ast.Name) for x, _ in found):
                file.note(
                    self.name,
                    f"{code(receiver)}.step gives four values here: five, terminated "
                    "and truncated, if it is an environment of Gymnasium.",
                )
            return updated
        target = updated.targets[0].target
        first, second, done, info = target.elements
        if any(isinstance(x, cst.StarredElement) for x in (first, second, done)):
            return updated
        is_ignored = code(done.value) == "_"
        flags = ("_", "_") if is_ignored else gym_values.flags_of(file)
        added = (cst.Element(cst.Name(name)) for name in flags)
        five = [first, second, *added, info]
        line = updated.with_changes(
            targets=[cst.AssignTarget(target.with_changes(elements=five))]
        )
        if is_ignored:
            return line
        value = cst.parse_expression(" or ".join(flags))
        old_flag = cst.Assign([cst.AssignTarget(done.value)], value)
        return cst.FlattenSentinel([line, old_flag])

    def _call(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """Takes the observation of a reset that is part of an expression."""
        parent = file.above[-1]
        takes_pair = isinstance(parent, cst.Assign | cst.Expr | cst.Subscript) or (
            isinstance(parent, cst.Return)
            and gym_values.is_own(file.scope, file)
            and getattr(file.scope.node, "name", "") == "reset"
        )
        if takes_pair or not gym_values.is_method(original, "reset", file):
            return updated
        return _first(updated)

    def _attribute(
        self, original: cst.Attribute, updated: cst.Attribute, file: File
    ) -> Any:
        """Takes from the environment itself what Gymnasium's wrappers lack."""
        name = original.attr.value
        if name in _OF_WRAPPERS or not text_of(original.value):
            return updated
        made = [
            scope.known(getattr(x, "func", None))
            for x, scope in file.scopes.origins(
                file.expression(original.value), file.scope, at=file.statement
            )
        ]
        if set(made) != {"gymnasium.make"}:
            return updated
        around = "spec" if name == "_max_episode_steps" else "unwrapped"
        inner = cst.Attribute(updated.value, cst.Name(around))
        return updated.with_changes(
            value=inner, attr=cst.Name(name.lstrip("_") if around == "spec" else name)
        )

    def _seed(self, original: cst.Expr, updated: cst.Expr, file: File) -> Any:
        """Seeds an environment by its reset."""
        call = updated.value
        is_seed = gym_values.is_method(original.value, "seed", file)
        if not is_seed or len(call.args) != 1:
            return updated
        receiver = original.value.func.value
        made = file.scopes.origins(
            file.expression(receiver), file.scope, at=file.statement
        )
        if gym_values.is_self(receiver, file) or not all(
            isinstance(x, ast.Call) and scope.known(x.func).startswith("gymnasium")
            for x, scope in made
        ):
            return updated
        function = call.func.with_changes(attr=cst.Name("reset"))
        seed = arguments(f"seed={code(call.args[0].value)}")
        return updated.with_changes(value=call.with_changes(func=function, args=seed))


def _first(pair: cst.BaseExpression) -> cst.Subscript:
    """Returns the first part of a pair."""
    return cst.Subscript(pair, [cst.SubscriptElement(cst.Index(cst.Integer("0")))])
