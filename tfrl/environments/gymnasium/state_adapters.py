"""Reads and sets the state of Gymnasium's environments, for checkpoints.

Gymnasium has no interface for that, so each class needs an adapter: a function that
returns the state of an environment, and one that sets it. There are adapters for
Gymnasium's classic control, toy text and MuJoCo environments, for the games of ale-py,
for MiniGrid and BabyAI, for most of Gymnasium's and MiniGrid's wrappers and for
`SyncVectorEnv`. `register` adds others. A class needs no adapter if it has the methods
`get_state` and `set_state` itself; these then cover all environments that it wraps,
too.

An adapter belongs to one class, not to its subclasses, which may hold more state; only
the adapter of `MiniGridEnv` saves whatever a subclass holds. The state of a wrapped
environment consists of its own state and the state of each wrapper. If one of their
classes is unknown, no state is saved, and a resumed run begins a new episode.

>>> import gymnasium
>>> from tfrl.environments import suite_gym
>>> from tfrl.environments.gymnasium import state_adapters
>>> class Scale(gymnasium.Wrapper):
...     factor = 1.0
>>> state_adapters.register(
...     Scale,
...     lambda wrapper: wrapper.factor,
...     lambda wrapper, state: setattr(wrapper, "factor", state),
... )
>>> environment = suite_gym.load("CartPole-v1", gym_env_wrappers=[Scale])
>>> _ = environment.reset()
>>> environment.gym.set_wrapper_attr("factor", 2.0)
True
>>> state = environment.get_state()
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfrl.compilation import internals
from tfrl.environments.gymnasium import (
    atari_state,
    attribute_state,
    minigrid_state,
    mujoco_state,
)
from tfrl.environments.gymnasium.attribute_state import Adapter
from tfrl.savers import serialization
from tfrl.system import state_savers

GetState = Callable[[Any], Any]
SetState = Callable[[Any, Any], None]


# Why some classes have no state that could be saved, by module and class.
_REFUSED = {
    "gymnasium.vector.async_vector_env:AsyncVectorEnv": (
        "AsyncVectorEnv.get_state: its processes do not tell which members they reset "
        "in the next step, expected environments whose state can be read; use "
        "ParallelPyEnvironment, or vectorization_mode='sync'."
    ),
    "tfrl.environments.gymnasium.envpool_vector_env:EnvPoolVectorEnv": (
        "EnvPoolVectorEnv.get_state: EnvPool keeps the state of its members in C++ "
        "and offers no way to read or set it, expected environments whose state can "
        "be read; load environments that must resume bit for bit by suite_gym, "
        "suite_mujoco or suite_atari."
    ),
}


def register(
    env_class: type,
    get_state: GetState | None = None,
    set_state: SetState | None = None,
) -> None:
    """Registers functions that read and set the state of a class of environments.

    Without functions the class has no state of its own, like a wrapper that only
    changes observations. `np_random` of an environment is saved in any case.

    Args:
      env_class: The class, a `gymnasium.Env`, `Wrapper` or `vector.VectorEnv`. The
        adapter is not used for its subclasses.
      get_state: A function that takes the environment and returns its state: arrays,
        numbers, strings, bytes, None, and nests of these. A wrapper's state does not
        include the environment that it wraps.
      set_state: A function that takes the environment and a state, and restores the
        state. It is called after a reset of the environment.

    Raises:
      TypeError: If `env_class` is not a class, or only one function is given.
    """
    if not isinstance(env_class, type):
        raise TypeError(
            f"env_class: got {env_class!r}, expected a class of environments or "
            "wrappers; pass type(env)."
        )
    if (get_state is None) != (set_state is None):
        raise TypeError(
            f"get_state, set_state: got {get_state!r} and {set_state!r}, expected two "
            "functions, or neither for a class without state of its own; add the "
            "missing one."
        )
    _registered[_name_of(env_class)] = (
        attribute_state.NOTHING
        if get_state is None or set_state is None
        else Adapter(get_state, set_state)
    )


def get_state(env: Any) -> dict[str, Any]:
    """Returns the state of a Gymnasium environment and its wrappers, as copies.

    Args:
      env: A `gymnasium.Env` or `gymnasium.vector.VectorEnv`, wrapped or not.

    Raises:
      NotImplementedError: If a class is unknown, or cannot give its state.
    """
    layers = list(_layers(env))
    adapters = [_adapter_of(layer) for layer in layers]
    return {
        "classes": [_name_of(type(layer)) for layer in layers],
        "states": [
            copy.deepcopy(adapter.get_state(layer))
            for layer, adapter in zip(layers, adapters, strict=True)
        ],
        "random": _random_state(env),
    }


def set_state(env: Any, state: dict[str, Any]) -> None:
    """Sets a state that `get_state` returned, here or in another process.

    Args:
      env: An environment that was made in the same way, and was reset once.
      state: The state; its values are copied.

    Raises:
      NotImplementedError: If a class is unknown.
      ValueError: If the state belongs to other classes.
    """
    layers = list(_layers(env))
    classes = [_name_of(type(layer)) for layer in layers]
    if state["classes"] != classes:
        raise ValueError(
            f"state: got the state of {' in '.join(reversed(state['classes']))}, "
            f"expected the state of {' in '.join(reversed(classes))}; make the "
            "environment and its wrappers as in the run that saved the state."
        )
    adapters = [_adapter_of(layer) for layer in layers]
    # The innermost layer comes first, because a wrapper may read the layers inside of
    # it.
    for layer, adapter, own in reversed(
        list(zip(layers, adapters, state["states"], strict=True))
    ):
        adapter.set_state(layer, copy.deepcopy(own))
    if state["random"] is not None:
        env.unwrapped.np_random.bit_generator.state = state["random"]


def _layers(env: Any) -> Iterator[Any]:
    """Yields the environment and the layers inside, down to one with its own state."""
    yield env
    while env is not env.unwrapped and not _has_own_methods(env):
        env = env.env
        yield env


def _adapter_of(layer: Any) -> Adapter:
    kind = type(layer)
    name = _name_of(kind)
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if _has_own_methods(layer):
        return Adapter(
            lambda env: env.get_state(), lambda env, state: env.set_state(state)
        )
    if name in _REFUSED:
        raise NotImplementedError(_REFUSED[name])
    if _MINIGRID in map(_name_of, kind.__mro__):
        return Adapter(minigrid_state.get_state, minigrid_state.set_state)
    what = "environment" if layer is layer.unwrapped else "wrapper"
    raise NotImplementedError(
        f"{kind.__qualname__}.get_state: got the {what} {name} without the "
        "methods get_state and set_state, expected one that saves its state; add the "
        "methods, or call tfrl.environments.gymnasium.state_adapters.register("
        f"{kind.__qualname__}, get_state, set_state), without the functions if it has "
        "no state of its own."
    )


def _has_own_methods(layer: Any) -> bool:
    """Whether the layer itself has both methods, not only the layers inside."""
    name = _name_of(type(layer))
    return not (name in _registered or name in _BUILT_IN) and all(
        hasattr(type(layer), method) or method in vars(layer)
        for method in ("get_state", "set_state")
    )


def _name_of(env_class: type) -> str:
    return f"{env_class.__module__}:{env_class.__qualname__}"


def _random_state(env: Any) -> Any:
    """Returns the state of the layer's own random generator, or None."""
    generator = getattr(env.unwrapped, "np_random", None)
    if not isinstance(generator, np.random.Generator):
        return None
    return copy.deepcopy(dict(generator.bit_generator.state))


def _get_members(env: Any) -> dict[str, Any]:
    return {
        "members": [get_state(member) for member in env.envs],
        "to_reset": internals.look_up(env, internals.MEMBERS_TO_RESET),
    }


def _set_members(env: Any, state: dict[str, Any]) -> None:
    for member, own in zip(env.envs, state["members"], strict=True):
        set_state(member, own)
    setattr(env, internals.MEMBERS_TO_RESET, state["to_reset"])


class _AdapterSaver(state_savers.RegistryStateSaver):
    """Registers a user's adapters in the processes of environments as well."""

    def entries(self) -> dict[str, Any]:
        return dict(_registered)

    def register(self, entries: dict[str, Any]) -> None:
        _registered.update(entries)


state_savers.add_state_savers([_AdapterSaver()])

# By module and class.
_registered: dict[str, Adapter] = {}
_BUILT_IN: dict[str, Adapter] = {
    **attribute_state.ADAPTERS,
    **dict.fromkeys(
        mujoco_state.CLASSES, Adapter(mujoco_state.get_state, mujoco_state.set_state)
    ),
    "ale_py.env:AtariEnv": Adapter(atari_state.get_state, atari_state.set_state),
    "gymnasium.vector.sync_vector_env:SyncVectorEnv": Adapter(
        _get_members, _set_members
    ),
}
# The base of MiniGrid's environments; all their attributes are saved.
_MINIGRID = "minigrid.minigrid_env:MiniGridEnv"


def storable(info: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns a copy of the entries of an info that checkpoints can hold."""
    if info is None:
        return None
    return {
        key: copy.deepcopy(value)
        for key, value in info.items()
        if serialization.is_storable(value)
    }
