"""Environments of gym that a program defines."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from tfrl.migrate import names
from tfrl.migrate.rule import File, Rule, code, text_in, text_of
from tfrl.migrate.rules.gym_values import (
    called,
    flags_of,
    is_environment,
    is_own,
    tuple_of,
)
from tfrl.migrate.scopes import Scope

PAGE = "from_tf_agents#environments-of-gym"


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
    page = PAGE
    nodes = (cst.FunctionDef, cst.Return, cst.DictElement, cst.Attribute)

    def leave(self, original: Any, updated: Any, file: File) -> Any:
        """See the base class."""
        if not is_own(file.scope, file):
            return updated
        if isinstance(original, cst.FunctionDef):
            return self._function(updated, file)
        if isinstance(original, cst.DictElement):
            if text_in(original.key) == "render.modes":
                return updated.with_changes(key=cst.SimpleString('"render_modes"'))
            return updated
        if isinstance(original, cst.Attribute):
            return _random(original, updated)
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
        if updated.name.value != "reset" or not _is_old(file.scope):
            return updated
        if not any(isinstance(x, ast.Return) and x.value for x in ast.walk(function)):
            file.note(self.name, "reset returns nothing: an observation and {}.")
            return updated
        params = updated.params
        if params.star_kwarg is not None:
            return updated
        made = cst.parse_expression("lambda *, seed=None, options=None: 0").params
        known = {x.name.value for x in (*params.params, *params.kwonly_params)}
        added = [x for x in made.kwonly_params if x.name.value not in known]
        star = made.star_arg if not params.kwonly_params else params.star_arg
        if isinstance(params.star_arg, cst.Param):
            star = params.star_arg
        if not added:
            return updated
        params = params.with_changes(
            star_arg=star, kwonly_params=[*params.kwonly_params, *added]
        )
        updated = updated.with_changes(params=params)
        owner = file.scope.owner
        bases = [
            names.canonical(file.scope.qualified(ast.unparse(x)))
            for x in getattr(owner.node if owner else None, "bases", ())
        ]
        calls_it = "super().reset" in code(updated.body)
        if "gymnasium.Env" not in bases or calls_it or "seed" in known:
            return updated
        seeds = cst.parse_statement("super().reset(seed=seed)\n")
        body = list(updated.body.body)
        at = int(updated.get_docstring() is not None)
        if not isinstance(updated.body, cst.IndentedBlock):
            return updated
        block = updated.body.with_changes(body=[*body[:at], seeds, *body[at:]])
        return updated.with_changes(body=block)

    def _reset_value(self, updated: cst.Return) -> Any:
        """Returns the observation with an empty info."""
        value = updated.value
        if value is None or called(value) == "reset":
            return updated
        bare = isinstance(value, cst.Tuple) and not value.lpar
        last = value.elements[-1].value if isinstance(value, cst.Tuple) else None
        if isinstance(last, cst.Dict) or (last is not None and "info" in code(last)):
            return updated
        if bare or isinstance(value, cst.IfExp | cst.Lambda | cst.Yield):
            value = cst.parse_expression(f"({code(value)})")
        pair = tuple_of([value, cst.Dict([])])
        return updated.with_changes(
            value=pair, whitespace_after_return=cst.SimpleWhitespace(" ")
        )

    def _step_value(self, updated: cst.Return, file: File) -> Any:
        """Returns two flags for one."""
        value = updated.value
        if not isinstance(value, cst.Tuple):
            if called(value) not in ("step", *_steps(file.scope)):
                file.note(self.name, "step returns terminated and truncated, not done.")
            return updated
        if len(value.elements) != 4:
            return updated
        first, second, done, info = value.elements
        flags = [done, cst.Element(cst.Name("False"))]
        if _is_passed_on(code(done.value), file):
            flags = [cst.Element(cst.Name(x)) for x in flags_of(file)]
        return updated.with_changes(
            value=value.with_changes(elements=[first, second, *flags, info])
        )


def _random(original: cst.Attribute, updated: cst.Attribute) -> Any:
    """Calls the methods that NumPy's generators have."""
    generators = ("self.np_random", "self._np_random")
    new = _RANDOM.get(original.attr.value)
    if new is None or text_of(original.value) not in generators:
        return updated
    return updated.with_changes(attr=cst.Name(new))


_RANDOM = {
    "randint": "integers",
    "rand": "random",
    "random_sample": "random",
    "randn": "standard_normal",
}


def _is_old(scope: Scope) -> bool:
    """Whether a method has not the arguments of Gymnasium's reset, or not its value.

    gym 0.22 has the arguments, and four values of `step` in the same class.
    """
    arguments = getattr(scope.node, "args", None)
    if arguments is None or not arguments.args:
        return False
    known = {x.arg for x in (*arguments.args, *arguments.kwonlyargs)}
    owner = scope.owner
    returned = [
        each.value
        for method in getattr(owner.node if owner else None, "body", ())
        if getattr(method, "name", "") in _steps(scope)
        for each in ast.walk(method)
        if isinstance(each, ast.Return)
    ]
    return not {"seed", "options"} <= known or any(
        isinstance(x, ast.Tuple) and len(x.elts) == 4 for x in returned
    )


def _steps(scope: Scope) -> set[str]:
    """Returns the methods of a class whose values `step` returns, and `step`."""
    owner = scope.owner
    found = {"step"}
    for method in getattr(owner.node if owner else None, "body", ()):
        if isinstance(method, ast.FunctionDef) and method.name == "step":
            for each in ast.walk(method):
                if isinstance(each, ast.Return) and isinstance(each.value, ast.Call):
                    found.add(ast.unparse(each.value.func).removeprefix("self."))
    return found


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
        and is_environment(x.value.func.value, file.scope, file)
    ]
    return len(steps) == len(found) == 1
