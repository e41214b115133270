"""Environments of gym that a program defines."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from tfrl.migrate.rule import File, Rule, code, method_of, text_in, text_of
from tfrl.migrate.rules import gym_values
from tfrl.migrate.scopes import Scope

# The methods that NumPy's generators have instead of those of its older ones.
_RANDOM = {
    f"self.{generator}.{old}": new
    for generator in ("np_random", "_np_random")
    for old, new in {
        "randint": "integers",
        "rand": "random",
        "random_sample": "random",
        "randn": "standard_normal",
    }.items()
}


class Environments(Rule):
    """Gives the program's own environments Gymnasium's reset and step.

    Example:
      -import gym
      -import tf_agents
      +import gymnasium as gym
      +import tfrl


       class Walk(gym.Env):
      -    def reset(self):
      +    def reset(self, *, seed=None, options=None):
      +        super().reset(seed=seed)
               self.x = 0
      -        return self.x
      +        return self.x, {}

           def step(self, action):
               self.x += action
      -        return self.x, 1.0, self.x == 5, {}
      +        return self.x, 1.0, self.x == 5, False, {}
    """

    name = "gym-environments"
    page = gym_values.PAGE
    nodes = (cst.FunctionDef, cst.Return, cst.DictElement, cst.Attribute)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if not gym_values.is_own(file.scope, file):
            return updated
        if isinstance(original, cst.FunctionDef):
            return self._function(updated, file)
        if isinstance(original, cst.DictElement):
            if text_in(original.key) == "render.modes":
                return updated.with_changes(key=cst.SimpleString('"render_modes"'))
            return updated
        if isinstance(original, cst.Attribute):
            new = _RANDOM.get(text_of(original))
            return updated.with_changes(attr=cst.Name(new)) if new else updated
        function = file.scope.node
        name = getattr(function, "name", "")
        if name == "reset" and _is_old(file.scope):
            return self._reset_value(updated)
        if name in _steps(file.scope):
            return self._step_value(updated, file)
        return updated

    def _function(self, updated: cst.FunctionDef, file: File) -> Any:
        """Adds the arguments of reset, and seeds the base class."""
        function = file.scope.node
        names = [x.name.value for x in updated.params.params]
        if updated.name.value == "render" and "mode" in names:
            file.note(
                self.name, "Gymnasium gives render no mode: set self.render_mode."
            )
        if updated.name.value != "reset" or not _is_old(file.scope):
            return updated
        if not any(isinstance(x, ast.Return) and x.value for x in ast.walk(function)):
            file.note(self.name, "reset returns nothing: an observation and {}.")
            return updated
        params = updated.params
        known = {x.name.value for x in (*params.params, *params.kwonly_params)}
        added = [f"{x}=None" for x in ("seed", "options") if x not in known]
        if params.star_kwarg or not added:
            return updated
        made = cst.ensure_type(
            cst.parse_expression(f"lambda *, {', '.join(added)}: 0"), cst.Lambda
        ).params
        has_star = isinstance(params.star_arg, cst.Param | cst.ParamStar)
        params = params.with_changes(
            star_arg=params.star_arg if has_star else made.star_arg,
            kwonly_params=[*params.kwonly_params, *made.kwonly_params],
        )
        updated = updated.with_changes(params=params)
        bases = map(file.scope.known, _class_of(file.scope).bases)
        calls_it = "seed" in known or "super().reset" in code(updated.body)
        if calls_it or "gymnasium.Env" not in bases:
            return updated
        if not isinstance(updated.body, cst.IndentedBlock):
            return updated
        body = list(updated.body.body)
        at = int(updated.get_docstring() is not None)
        body.insert(at, cst.parse_statement("super().reset(seed=seed)\n"))
        return updated.with_deep_changes(updated.body, body=body)

    def _reset_value(self, updated: cst.Return) -> Any:
        """Returns the observation with an empty info."""
        value = updated.value
        if value is None or method_of(value) == "reset":
            return updated
        bare = isinstance(value, cst.Tuple) and not value.lpar
        last = value.elements[-1].value if isinstance(value, cst.Tuple) else None
        if isinstance(last, cst.Dict) or (last is not None and "info" in code(last)):
            return updated
        if bare or isinstance(value, cst.IfExp | cst.Lambda | cst.Yield):
            value = cst.parse_expression(f"({code(value)})")
        pair = gym_values.tuple_of([value, cst.Dict([])])
        return updated.with_changes(
            value=pair, whitespace_after_return=cst.SimpleWhitespace(" ")
        )

    def _step_value(self, updated: cst.Return, file: File) -> Any:
        """Returns two flags for one."""
        value = updated.value
        if not isinstance(value, cst.Tuple):
            if method_of(value) not in ("step", *_steps(file.scope)):
                file.note(self.name, "step returns terminated and truncated, not done.")
            return updated
        if len(value.elements) != 4:
            return updated
        first, second, done, info = value.elements
        flags = [done, cst.Element(cst.Name("False"))]
        if _is_passed_on(code(done.value), file):
            flags = [cst.Element(cst.Name(x)) for x in gym_values.flags_of(file)]
        return updated.with_changes(
            value=value.with_changes(elements=[first, second, *flags, info])
        )


def _is_old(scope: Scope) -> bool:
    """Whether a method has not the arguments of Gymnasium's reset, or not its value.

    gym 0.22 has the arguments, and four values of `step` in the same class.
    """
    arguments = getattr(scope.node, "args", None)
    if arguments is None or not arguments.args:
        return False
    known = {x.arg for x in (*arguments.args, *arguments.kwonlyargs)}
    return not {"seed", "options"} <= known or any(
        isinstance(x, ast.Tuple) and len(x.elts) == 4
        for x in _returned(scope, _steps(scope))
    )


def _steps(scope: Scope) -> set[str]:
    """Returns the methods of a class whose values `step` returns, and `step`."""
    values = _returned(scope, {"step"})
    calls = [ast.unparse(x.func) for x in values if isinstance(x, ast.Call)]
    return {"step", *(text.removeprefix("self.") for text in calls)}


def _returned(scope: Scope, methods: set[str]) -> list[ast.AST | None]:
    """Returns what some methods of the class around a scope return."""
    return [
        each.value
        for method in _class_of(scope).body
        if getattr(method, "name", "") in methods
        for each in ast.walk(method)
        if isinstance(each, ast.Return)
    ]


def _class_of(scope: Scope) -> ast.ClassDef:
    owner = scope.owner
    assert owner is not None
    assert isinstance(owner.node, ast.ClassDef)
    return owner.node


def _is_passed_on(name: str, file: File) -> bool:
    """Whether a flag is what the step of another environment gave."""
    found = file.scope.names.get(name, [])
    steps = [
        x
        for x in ast.walk(file.scope.node)
        if isinstance(x, ast.Assign)
        and isinstance(x.targets[0], ast.Tuple)
        and len(x.targets[0].elts) == 4
        and ast.unparse(x.targets[0].elts[2]) == name
        and isinstance(x.value, ast.Call)
        and isinstance(x.value.func, ast.Attribute)
        and x.value.func.attr == "step"
        and gym_values.is_environment(x.value.func.value, file.scope, file)
    ]
    return len(steps) == len(found) == 1
