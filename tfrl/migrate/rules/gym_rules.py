"""Programs that make, draw and step environments of gym, or define them."""

from __future__ import annotations

import ast
import re
from typing import Any

from tfrl.migrate import names
from tfrl.migrate.rule import File, argument, method_of, rule, text_in
from tfrl.migrate.rules import gym_values
from tfrl.migrate.rules.gym_values import is_environment, is_method, is_own, receiver_of
from tfrl.migrate.scopes import Scope, dotted

# What makes environments, and how it is told the mode of rendering.
_LOADERS: dict[str, str] = names.TABLES["loaders"]
_ATARI = re.compile(
    r"ALE/\w+-v5|[A-Z]\w*(NoFrameskip|Deterministic)-v[04]|[A-Z]\w+-v4|"
    r"(BeamRider|Breakout|Enduro|MsPacman|Pong|Qbert|Seaquest|SpaceInvaders)-v0"
)


@rule("gym-identifiers", "migrate#gym", ast.Constant)
def identifiers(node: ast.Constant, file: File) -> None:
    """Names the versions of environments that Gymnasium has.

    Example:
      -import gym, tf_agents
      +import gymnasium as gym, tfrl
      -env = gym.make("Pendulum-v0")
      +env = gym.make("Pendulum-v1")
    """
    text = text_in(node)
    name, _, version = text.rpartition("-v")
    newest = names.TABLES["versions"].get(name, 0)
    if version.isdigit() and int(version) < newest:
        new = f"{name}-v{newest}"
    elif not newest and _ATARI.fullmatch(text):
        new = f"ale_py:{text}"
    else:
        return
    if _is_loaded(node, file):
        file.replace(node, file.text(node).replace(text, new))
    elif newest:
        file.note(f"Gymnasium has {new} instead of {text}.")


def _is_loaded(node: ast.Constant, file: File) -> bool:
    """Whether a literal goes to a function that makes environments."""
    return any(
        node is x
        for name in ("make", "load", "DEFINE_string", "add_argument")
        for call, scope in file.scopes.calls.get(name, [])
        if name not in ("make", "load") or scope.known(call.func) in _LOADERS
        for given in [*call.args, *(x.value for x in call.keywords)]
        for x, _ in file.scopes.origins(given, scope)
    )


@rule("gym-wrapped", gym_values.PAGE, ast.Call)
def wrapped(node: ast.Call, file: File) -> None:
    """Makes a PyEnvironment of what the wrappers of PyEnvironments get.

    Example:
      -import gym
      -from tf_agents.environments import suite_gym, wrappers
      +import gymnasium as gym
      +from tfrl.environments import suite_gym, wrappers
       env = gym.make("CartPole-v1")
      -env = wrappers.ActionRepeat(env, times=4)
      +env = wrappers.ActionRepeat(suite_gym.wrap_env(env), times=4)
    """
    is_ours = re.match(r"tfrl\.environments\.(wrappers\.)?[A-Z]", file.known(node.func))
    if is_ours and node.args and is_environment(node.args[0], file):
        wrap = file.written("tfrl.environments.suite_gym.wrap_env", "suite_gym")
        file.wrap(node.args[0], f"{wrap}(", ")")


@rule("gym-rendering", gym_values.PAGE, ast.Call)
def rendering(node: ast.Call, file: File) -> None:
    """Gives the mode of rendering where the environment is made.

    Example:
      -import gym, tf_agents
      -env = gym.make("CartPole-v1")
      -frame = env.render(mode="rgb_array")
      +import gymnasium as gym, tfrl
      +env = gym.make("CartPole-v1", render_mode="rgb_array")
      +frame = env.render()
    """
    if loader := _LOADERS.get(file.known(node.func)):
        _made(node, loader, file)
    elif is_method(node, "render", file):
        _drawn(node, file)
    elif method_of(node) == "render" and (mode := argument(node, "mode", 0)):
        # Perhaps of an environment that the file makes, and that a wrapper holds.
        makes = [
            ast.unparse(call)
            for call, scope in file.scopes.calls.get("make", [])
            if scope.known(call.func) == "gymnasium.make"
        ]
        if makes and not any("render_mode" in make for make in makes):
            file.note(f"give gym.make render_mode={ast.unparse(mode)} to draw it.")
    name = dotted(node.func).rpartition(".")[2]
    bases = [
        file.scope.known(base)
        for binding in file.scope.find(name)
        for base in getattr(binding.value, "bases", ())
    ]
    is_drawn = name in file.classes and "render" in file.scopes.calls
    if is_drawn and any(base.startswith("gymnasium.envs.") for base in bases):
        file.note(f"give the base class of {name} a render_mode.")


def _made(node: ast.Call, loader: str, file: File) -> None:
    modes = _modes(node, file)
    if "gym_kwargs" in loader:
        modes -= {"rgb_array"}  # It is the usual mode there.
        calls = [file.scopes.calls.get(x, []) for x in ("render", "reset")]
        first = [min(call.lineno for call, _ in each) for each in calls if each]
        if modes and first == sorted(first):
            file.note("reset the environment before it is drawn.")
    given = {x.arg for x in node.keywords} & {"render_mode", "gym_kwargs"}
    if len(modes) == 1 and "" not in modes and node.args and not given:
        (mode,) = modes
        file.add_argument(node, loader.format(f'"{mode}"'))


def _drawn(node: ast.Call, file: File) -> None:
    found = file.scopes.origins(receiver_of(node), file.scope)
    made = [x for x, _ in found if isinstance(x, ast.Call)]
    module = file.scopes.module
    if not made or any(module.known(x.func) != "gymnasium.make" for x in made):
        return
    modes = {mode for x in made for mode in _modes(x, file)}
    given = [*node.args, *node.keywords]
    if given and len(modes) == 1 and "" not in modes:
        file.remove(given, given)
    elif not modes and not any("render_mode" in ast.unparse(x) for x in made):
        file.note("give gym.make a render_mode, to see it drawn.")


def _modes(made: ast.Call, file: File) -> set[str]:
    """Returns the modes in which an environment is drawn; "" for an unknown one."""
    return {
        text_in(mode)
        for call, scope in file.scopes.calls.get("render", [])
        if (mode := argument(call, "mode", 0))
        and any(made is x for x, _ in file.scopes.origins(receiver_of(call), scope))
    }


@rule(
    "gym-environments",
    gym_values.PAGE,
    ast.FunctionDef,
    ast.Return,
    ast.Constant,
    ast.Attribute,
)
def environments(node: Any, file: File) -> None:
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
    scope = file.scopes.of.get(node, file.scope)
    if not is_own(file, scope):
        return
    if isinstance(node, ast.FunctionDef):
        _function(node, scope, file)
    elif isinstance(node, ast.Constant):
        if text_in(node) == "render.modes":
            file.replace(node, '"render_modes"')
    elif isinstance(node, ast.Attribute):
        new = names.TABLES["random"].get(node.attr)
        if new and dotted(node.value) in ("self.np_random", "self._np_random"):
            file.replace_name(node, new)
    elif scope.node.name == "reset" and _is_old(scope):
        _reset_value(node, file)
    elif scope.node.name in _steps(scope):
        _step_value(node, file)


def _function(node: ast.FunctionDef, scope: Scope, file: File) -> None:
    """Adds the arguments of reset, and seeds the base class."""
    of = node.args
    known = {x.arg for x in (*of.args, *of.kwonlyargs)}
    if node.name == "render" and "mode" in known:
        file.note("Gymnasium gives render no mode: set self.render_mode.")
    if node.name != "reset" or not _is_old(scope):
        return
    if not any(isinstance(x, ast.Return) and x.value for x in ast.walk(node)):
        file.note("reset returns nothing: an observation and {}.")
        return
    added = [f"{x}=None" for x in ("seed", "options") if x not in known]
    if of.kwarg or not added:
        return
    star = [] if of.vararg or of.kwonlyargs else ["*"]
    parts = [file.span(x)[1] for x in ast.walk(of) if hasattr(x, "lineno")]
    file.edit(max(parts), max(parts), f", {', '.join([*star, *added])}")
    bases = map(file.scope.known, scope.owner.node.bases if scope.owner else [])
    calls_it = "seed" in known or "super().reset" in file.text(node)
    first = node.body[0]
    if calls_it or "gymnasium.Env" not in bases or first.lineno == node.lineno:
        return
    if text_in(getattr(first, "value", None)):
        file.below(first, "super().reset(seed=seed)")
    else:
        file.above(first, "super().reset(seed=seed)")


def _reset_value(node: ast.Return, file: File) -> None:
    """Returns the observation with an empty info."""
    value = node.value
    if value is None or method_of(value) == "reset":
        return
    last = value.elts[-1] if isinstance(value, ast.Tuple) and value.elts else None
    if isinstance(last, ast.Dict) or (last and "info" in ast.unparse(last)):
        return
    bare = False
    if isinstance(value, ast.Tuple) and value.elts:
        end = file.span(value.elts[0])[1]  # It may have brackets of its own.
        bare = file.text(value)[0] != "(" or file.source[end] == ")"
    if bare or isinstance(value, ast.IfExp | ast.Lambda | ast.Yield):
        file.wrap(value, "(", "), {}")
    else:
        file.wrap(value, "", ", {}")


def _step_value(node: ast.Return, file: File) -> None:
    """Returns two flags for one."""
    value = node.value
    if not isinstance(value, ast.Tuple):
        if method_of(value) not in ("step", *_steps(file.scope)):
            file.note("step returns terminated and truncated, not done.")
    elif len(value.elts) == 4:
        if _is_passed_on(value.elts[2], file):
            file.replace(value.elts[2], ", ".join(gym_values.flags_of(file)))
        else:
            file.wrap(value.elts[2], "", ", False")


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
    calls = [dotted(getattr(x, "func", None)) for x in _returned(scope, {"step"})]
    return {"step", *(text.removeprefix("self.") for text in calls)}


def _returned(scope: Scope, methods: set[str]) -> list[ast.AST | None]:
    """Returns what some methods of the class around a scope return."""
    return [
        each.value
        for method in (scope.owner.node.body if scope.owner else ())
        if getattr(method, "name", "") in methods
        for each in ast.walk(method)
        if isinstance(each, ast.Return)
    ]


def _is_passed_on(flag: ast.AST, file: File) -> bool:
    """Whether a flag is what the step of another environment gave."""
    found = file.scope.names.get(dotted(flag), [])
    steps = [
        x
        for x in ast.walk(file.scope.node)
        if isinstance(x, ast.Assign)
        and len(_elements(x)) == 4
        and dotted(_elements(x)[2]) == dotted(flag)
        and method_of(x.value) == "step"
        and is_environment(receiver_of(x.value), file, file.scope)
    ]
    return len(steps) == len(found) == 1


def _elements(node: ast.Assign) -> list[ast.expr]:
    """Returns the targets that an assignment unpacks its value to."""
    return getattr(node.targets[0], "elts", [])


# What an environment has in its wrappers, too.
_OF_WRAPPERS = set(names.TABLES["of_wrappers"].split())


@rule("gym-calls", gym_values.PAGE, ast.Assign, ast.Call, ast.Attribute)
def calls(node: Any, file: File) -> None:
    """Unpacks what Gymnasium's reset and step return, and finds what wrappers hide.

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
      -print(env.state)
      +print(env.unwrapped.state)
    """
    if isinstance(node, ast.Attribute):
        _attribute(node, file)
    elif isinstance(node, ast.Call):
        _call(node, file)
    else:
        if is_method(node.value, "reset", file):
            _reset(node, _elements(node), file)
        elif method_of(node.value) == "step":
            _step(node, _elements(node), file)


def _reset(node: ast.Assign, elements: list[ast.expr], file: File) -> None:
    """Assigns the observation of a reset."""
    if len(elements) == 2:
        second = ast.unparse(elements[1])
        if second != "_" and "info" not in second:
            file.note(f"{second} is the info of Gymnasium's reset here.")
    elif elements or len(node.targets) > 1:
        file.wrap(node.value, "", "[0]")
    else:
        file.wrap(node.targets[0], "", ", _")


def _step(node: ast.Assign, elements: list[ast.expr], file: File) -> None:
    """Writes five targets for four, and the old flag after them."""
    receiver = receiver_of(node.value)
    if not is_method(node.value, "step", file):
        found = file.scopes.origins(receiver, file.scope)
        unknown = any(x is None or isinstance(x, ast.Name) for x, _ in found)
        if len(elements) == 4 and unknown and receiver:
            file.note(
                f"{ast.unparse(receiver)}.step gives four values here: five, "
                "terminated and truncated, if it is an environment of Gymnasium."
            )
    elif not elements:
        target = ast.unparse(node.targets[0])
        file.note(f"{target} has five values: terminated and truncated, not done.")
    elif len(elements) == 4 and not any(
        isinstance(x, ast.Starred) for x in elements[:3]
    ):
        done = ast.unparse(elements[2])
        flags = ("_", "_") if done == "_" else gym_values.flags_of(file)
        file.replace(elements[2], ", ".join(flags))
        if done != "_":
            file.below(node, f"{done} = {' or '.join(flags)}")


def _call(node: ast.Call, file: File) -> None:
    """Takes the observation of a reset within an expression; seeds by reset."""
    parent = file.parent
    takes_pair = isinstance(parent, ast.Assign | ast.Expr | ast.Subscript) or (
        isinstance(parent, ast.Return)
        and is_own(file, file.scope)
        and file.scope.node.name == "reset"
    )
    if not takes_pair and is_method(node, "reset", file):
        file.wrap(node, "", "[0]")
    if isinstance(parent, ast.Expr) and is_method(node, "seed", file):
        receiver = receiver_of(node)
        found = file.scopes.origins(receiver, file.scope, at=node)
        if len(node.args) == 1 and all(
            scope.known(getattr(x, "func", None)).startswith("gymnasium")
            for x, scope in found
        ):
            file.replace_name(node.func, "reset")  # type: ignore[arg-type]
            file.wrap(node.args[0], "seed=", "")


def _attribute(node: ast.Attribute, file: File) -> None:
    """Takes from the environment itself what Gymnasium's wrappers lack."""
    if node.attr in _OF_WRAPPERS or not dotted(node.value):
        return
    found = file.scopes.origins(node.value, file.scope, at=node)
    made = {scope.known(getattr(x, "func", None)) for x, scope in found}
    if made == {"gymnasium.make"}:
        is_limit = node.attr == "_max_episode_steps"
        new = "spec.max_episode_steps" if is_limit else f"unwrapped.{node.attr}"
        file.replace_name(node, new)
