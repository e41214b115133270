"""Programs that call environments of gym."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from tfrl.migrate.rule import File, Rule, code
from tfrl.migrate.rules.gym_values import (
    called,
    flags_of,
    is_method,
    is_self,
    tuple_of,
)

PAGE = "from_tf_agents#environments-of-gym"


class Calls(Rule):
    """Unpacks what Gymnasium's reset and step return."""

    name = "gym-calls"
    page = PAGE
    before = (
        'import gym, tf_agents\nenv = gym.make("CartPole-v1")\nobs = env.reset()\n'
        "done = False\nwhile not done:\n"
        "    obs, reward, done, info = env.step(0)\n"
    )
    after = (
        'import gymnasium as gym, tfrl\nenv = gym.make("CartPole-v1")\n'
        "obs, _ = env.reset()\ndone = False\nwhile not done:\n"
        "    obs, reward, terminated, truncated, info = env.step(0)\n"
        "    done = terminated or truncated\n"
    )
    nodes = (cst.Assign, cst.Call, cst.Expr)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if isinstance(original, cst.Call):
            return self._call(original, updated, file)
        if isinstance(original, cst.Expr):
            return self._seed(original, updated, file)
        if len(updated.targets) != 1:
            return updated
        target = updated.targets[0].target
        elements = target.elements if isinstance(target, cst.Tuple) else ()
        if isinstance(target, cst.Name) and is_method(original.value, "reset", file):
            return updated.with_changes(
                targets=[cst.AssignTarget(tuple_of([target, cst.Name("_")]))]
            )
        if len(elements) == 4 and called(original.value) == "step":
            return self._step(original, updated, file)
        if isinstance(target, cst.Name) and is_method(original.value, "step", file):
            file.note(
                self.name,
                f"{target.value} has five values: terminated and truncated, not done.",
            )
        return updated

    def _step(self, original: cst.Assign, updated: cst.Assign, file: File) -> Any:
        """Writes five targets for four, and the old flag after them."""
        if not is_method(original.value, "step", file):
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
        first, second, done, info = (x.value for x in target.elements)
        if code(done) == "_":
            flags = [cst.Name("_"), cst.Name("_")]
        else:
            flags = [cst.Name(x) for x in flags_of(file)]
        five = tuple_of([first, second, *flags, info]).with_changes(
            lpar=target.lpar, rpar=target.rpar
        )
        line = updated.with_changes(targets=[cst.AssignTarget(five)])
        if code(done) == "_":
            return line
        value = cst.parse_expression(" or ".join(x.value for x in flags))
        return cst.FlattenSentinel([line, cst.Assign([cst.AssignTarget(done)], value)])

    def _call(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """Takes the observation of a reset that is part of an expression."""
        parent = file.above[-1]
        takes_pair = isinstance(
            parent, cst.Assign | cst.Expr | cst.Subscript | cst.Return | cst.AnnAssign
        )
        if takes_pair or not is_method(original, "reset", file):
            return updated
        return cst.Subscript(
            updated, [cst.SubscriptElement(cst.Index(cst.Integer("0")))]
        )

    def _seed(self, original: cst.Expr, updated: cst.Expr, file: File) -> Any:
        """Seeds an environment by its reset."""
        call = updated.value
        if not is_method(original.value, "seed", file) or len(call.args) != 1:
            return updated
        receiver = original.value.func.value
        made = file.scopes.origins(file.expression(receiver), file.scope)
        if is_self(receiver, file) or not all(
            isinstance(x, ast.Call)
            and file.scopes.module.qualified(ast.unparse(x.func)).startswith("gym")
            for x, _ in made
        ):
            return updated
        function = call.func.with_changes(attr=cst.Name("reset"))
        seed = cst.parse_expression(f"f(seed={code(call.args[0].value)})").args
        return updated.with_changes(value=call.with_changes(func=function, args=seed))
