"""The state of MiniGrid's and BabyAI's environments.

An environment keeps its state in its attributes. They refer to a graph of objects: the
grid's cells, the object that the agent carries, rooms with doors, and BabyAI's
instructions, which refer to the environment. The same object may be reached in several
ways, and MiniGrid asks whether two objects are the same one. So a state is a list of
nodes, the environment first, and a value that is an object or a list is the number of a
node. Only MiniGrid's own classes are made from a state, without calling them.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

_PACKAGE = "minigrid."
# Spaces, what the constructor was told and pictures: no step or reset changes them. The
# random numbers are saved for all environments alike.
_NOT_STATE = frozenset(
    (
        *("action_space", "observation_space", "spec", "metadata"),
        *("render_mode", "render_size", "screen_size", "window", "clock"),
        *("_np_random", "_np_random_seed"),
    )
)
_CONSTANTS = ("minigrid.envs.wfc.config:WFCConfig",)
_PLAIN = (type(None), bool, int, float, str, bytes)


def get_state(env: Any) -> list[Any]:
    """Returns the attributes of a `minigrid.minigrid_env.MiniGridEnv`, as nodes.

    Raises:
      NotImplementedError: If an attribute is neither a number, text or array nor an
        object of MiniGrid.
    """
    graph = _Graph()
    graph.number_of(env, type(env).__qualname__)
    nodes = []
    for owner, path in graph.owners:  # Grows while its nodes are made.
        nodes.append(graph.node(owner, path))
    return nodes


def set_state(env: Any, state: list[Any]) -> None:
    """Sets the attributes of an environment.

    Raises:
      ValueError: If the state names a class that is not one of MiniGrid's.
    """
    owners = [env, *(_new(kind) for kind, _ in state[1:])]
    for owner, (_, content) in zip(owners, state, strict=True):
        if isinstance(owner, list):
            owner.extend(_decoded(value, owners) for value in content)
        elif isinstance(owner, dict):
            owner.update(_decoded(item, owners) for item in content)
        else:
            for name, value in content.items():
                setattr(owner, name, _decoded(value, owners))


class _Graph:
    """The objects, lists and dictionaries that were found, with their paths."""

    def __init__(self) -> None:
        self.owners: list[tuple[Any, str]] = []
        self._numbers: dict[int, int] = {}

    def number_of(self, owner: Any, path: str) -> int:
        """Returns the number of an owner of values; a new one becomes the last."""
        if id(owner) not in self._numbers:
            self._numbers[id(owner)] = len(self.owners)
            self.owners.append((owner, path))
        return self._numbers[id(owner)]

    def node(self, owner: Any, path: str) -> tuple[str, Any]:
        """Returns an owner's class and values."""
        if isinstance(owner, list):
            return "list", self._encoded_items(owner, path)
        if isinstance(owner, dict):
            return "dict", self._encoded_items(list(owner.items()), path)
        return _name_of(type(owner)), {
            name: self._encoded(value, f"{path}.{name}")
            for name, value in vars(owner).items()
            if name not in _NOT_STATE and _name_of(type(value)) not in _CONSTANTS
        }

    def _encoded_items(self, items: Sequence[Any], path: str) -> list[Any]:
        return [self._encoded(item, f"{path}[{i}]") for i, item in enumerate(items)]

    def _encoded(self, value: Any, path: str) -> Any:
        """Returns a value, or a tuple of what it is and its content."""
        kind = type(value)
        if kind in _PLAIN or kind is np.ndarray:
            return value
        if isinstance(value, np.generic):
            # Not an array each, of which files hold thousands slowly.
            return "number", value.dtype.str, value.item()
        if kind is tuple:
            return "tuple", self._encoded_items(value, path)
        if isinstance(value, type) and _is_of_minigrid(value):
            return "class", _name_of(value)
        if self._is_owner(value):
            return "node", self.number_of(value, path)
        raise NotImplementedError(
            f"{path}: got a {_name_of(kind)}, expected a number, text, an array, an "
            "object of MiniGrid, or lists, tuples and dictionaries of these; say how "
            "the environment's state is read and set with "
            "tfrl.environments.gymnasium.state_adapters.register."
        )

    def _is_owner(self, value: Any) -> bool:
        kind = type(value)
        of_minigrid = _is_of_minigrid(kind) and not issubclass(kind, enum.Enum)
        return of_minigrid or kind in (list, dict) or id(value) in self._numbers


def _decoded(value: Any, owners: list[Any]) -> Any:
    if not isinstance(value, tuple):
        return value
    kind, *content = value
    if kind == "number":
        return np.dtype(content[0]).type(content[1])
    if kind == "tuple":
        return tuple(_decoded(item, owners) for item in content[0])
    return owners[content[0]] if kind == "node" else _class_of(content[0])


def _new(kind: str) -> Any:
    """Returns an empty list or dictionary, or an object without attributes."""
    if kind in ("list", "dict"):
        return [] if kind == "list" else {}
    return object.__new__(_class_of(kind))


def _class_of(name: str) -> type:
    """Returns one of MiniGrid's classes, whose module has been imported."""
    module, _, qualified_name = name.partition(":")
    found = getattr(sys.modules.get(module), qualified_name, None)
    if (
        not isinstance(found, type)
        or not _is_of_minigrid(found)
        or _name_of(found) != name
    ):
        raise ValueError(
            f"state: got an object of the class {name}, expected a class of MiniGrid "
            "that this environment uses; use the release of MiniGrid that saved the "
            "state."
        )
    return found


def _is_of_minigrid(kind: type) -> bool:
    return kind.__module__.startswith(_PACKAGE)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
