"""How a program makes environments of gym."""

from __future__ import annotations

import ast
import re
from typing import Any

import libcst as cst

from tfrl.migrate import names
from tfrl.migrate.rule import File, Rule, argument, arguments, text_in, text_of
from tfrl.migrate.rules import gym_values

_LOADERS = (
    "gymnasium.make",
    "tfrl.environments.suite_gym.load",
    "tfrl.environments.suite_mujoco.load",
)
_ATARI = re.compile(
    r"ALE/\w+-v5|[A-Z]\w*(NoFrameskip|Deterministic)-v[04]|[A-Z]\w+-v4|"
    r"(BeamRider|Breakout|Enduro|MsPacman|Pong|Qbert|Seaquest|SpaceInvaders)-v0"
)


class Identifiers(Rule):
    """Names the versions of environments that Gymnasium has.

    Example:
      -import gym, tf_agents
      +import gymnasium as gym, tfrl
      -env = gym.make("Pendulum-v0")
      +env = gym.make("Pendulum-v1")
    """

    name = "gym-identifiers"
    page = "migrate#gym"
    nodes = (cst.SimpleString,)

    def leave(
        self, original: cst.SimpleString, updated: cst.SimpleString, file: File
    ) -> Any:
        """See the base class."""
        text = text_in(original)
        name, dash, version = text.rpartition("-v")
        newest = names.TABLES["versions"].get(name)
        if newest and dash and version.isdigit() and int(version) < newest:
            new = f"{name}-v{newest}"
        elif dash and not newest and _ATARI.fullmatch(text):
            new = f"ale_py:{text}"
        else:
            return updated
        if not _is_loaded(text, file):
            if newest:
                file.note(self.name, f"Gymnasium has {new} instead of {text}.")
            return updated
        return updated.with_changes(value=original.value.replace(text, new))


def _is_loaded(text: str, file: File) -> bool:
    """Whether the statement's literal goes to a function that makes environments."""
    literals = {
        id(x)
        for x in ast.walk(file.statement)
        if isinstance(x, ast.Constant) and x.value == text
    }
    for loader in ("make", "load", "DEFINE_string", "add_argument"):
        for call, scope in file.scopes.calls.get(loader, []):
            if loader in ("make", "load") and scope.known(call.func) not in _LOADERS:
                continue
            for given in [*call.args, *(x.value for x in call.keywords)]:
                if any(id(x) in literals for x, _ in file.scopes.origins(given, scope)):
                    return True
    return False


class Wrapped(Rule):
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

    name = "gym-wrapped"
    page = gym_values.PAGE
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        known = file.known(original.func)
        if not re.match(r"tfrl\.environments\.(wrappers\.)?[A-Z]", known):
            return updated
        if not original.args or not gym_values.is_environment(
            file.expression(original.args[0].value),
            file.scope,
            file,
            file.statement,
        ):
            return updated
        wrap = file.written("tfrl.environments.suite_gym.wrap_env", "suite_gym")
        made = cst.Call(wrap, [cst.Arg(updated.args[0].value)])
        return updated.with_deep_changes(updated.args[0], value=made)


# What makes environments, and how it is told the mode of rendering.
_DRAWN = {
    "gymnasium.make": 'render_mode="{}"',
    "tfrl.environments.suite_gym.load": 'gym_kwargs={{"render_mode": "{}"}}',
}


class Rendering(Rule):
    """Gives the mode of rendering where the environment is made.

    Example:
      -import gym, tf_agents
      -env = gym.make("CartPole-v1")
      -frame = env.render(mode="rgb_array")
      +import gymnasium as gym, tfrl
      +env = gym.make("CartPole-v1", render_mode="rgb_array")
      +frame = env.render()
    """

    name = "gym-rendering"
    page = gym_values.PAGE
    nodes = (cst.Call,)

    def leave(self, original: cst.Call, updated: cst.Call, file: File) -> Any:
        """See the base class."""
        if (loader := file.known(original.func)) in _DRAWN:
            text = ast.unparse(file.expression(original))
            modes = {
                mode
                for call in ast.walk(file.statement)
                if isinstance(call, ast.Call) and ast.unparse(call) == text
                for mode in _modes(call, file)
            }
            if loader.startswith("tfrl."):
                modes -= {"rgb_array"}  # It is the usual mode there.
                calls = [file.scopes.calls.get(x, []) for x in ("render", "reset")]
                first = [min(call.lineno for call, _ in each) for each in calls if each]
                if modes and first == sorted(first):
                    file.note(self.name, "reset the environment before it is drawn.")
            has_one = len(modes) == 1 and None not in modes
            return _with_mode(updated, _DRAWN[loader], *modes) if has_one else updated
        self._note_own(original, file)
        if not gym_values.is_method(original, "render", file):
            return updated
        receiver = file.expression(original.func.value)
        made = [x for x, _ in file.scopes.origins(receiver, file.scope)]
        module = file.scopes.module
        if any(module.known(getattr(x, "func", x)) != "gymnasium.make" for x in made):
            return updated
        given = argument(original, "mode", 0)
        modes = {mode for x in made for mode in _modes(x, file)}
        if given is None or len(modes) != 1 or None in modes:
            has_mode = any("render_mode" in ast.unparse(x) for x in made if x)
            if not (has_mode or modes):
                file.note(self.name, "give gym.make a render_mode, to see it drawn.")
            return updated
        return updated.with_changes(args=[])

    def _note_own(self, original: cst.Call, file: File) -> None:
        """Lists environments of gym that a program extends and draws."""
        name = text_of(original.func).rpartition(".")[2]
        bases = [
            file.scope.known(base)
            for binding in file.scope.find(name)
            for base in getattr(binding.value, "bases", ())
        ]
        is_drawn = name in file.classes and "render" in file.scopes.calls
        if is_drawn and any(base.startswith("gymnasium.envs.") for base in bases):
            file.note(self.name, f"give the base class of {name} a render_mode.")


def _with_mode(call: cst.Call, text: str, mode: str | None) -> cst.Call:
    """Returns the call that makes an environment with a mode of rendering."""
    added = arguments(text.format(mode))
    name = added[0].keyword
    if not call.args or name is None or argument(call, name.value):
        return call
    rest = call.args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=[*call.args[:-1], rest, *added])


def _modes(made: ast.AST | None, file: File) -> set[str | None]:
    """Returns the modes in which an environment is drawn; None for an unknown one."""
    modes: set[str | None] = set()
    for call, scope in file.scopes.calls.get("render", []):
        given = [x.value for x in call.keywords if x.arg == "mode"] + call.args
        if given and isinstance(call.func, ast.Attribute):
            mode = getattr(given[0], "value", None)
            if any(x is made for x, _ in file.scopes.origins(call.func.value, scope)):
                modes.add(mode if isinstance(mode, str) else None)
    return modes
