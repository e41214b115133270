"""The state of environments and wrappers that keep it in a few attributes."""

from __future__ import annotations

import collections
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrl.compilation import internals

_ENVIRONMENTS = "gymnasium.envs."
_WRAPPERS = "gymnasium.wrappers."
_MOMENTS = ("mean", "var", "count")

# The attributes that hold the state, by module and class; private ones are in
# `internals.WRAPPER_STATE`.
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "classic_control.acrobot:AcrobotEnv": ("state",),
    "classic_control.cartpole:CartPoleEnv": ("state", "steps_beyond_terminated"),
    "classic_control.cartpole:CartPoleVectorEnv": (
        "state",
        "steps",
        "prev_done",
        "steps_beyond_terminated",
        "low",
        "high",
    ),
    "classic_control.continuous_mountain_car:Continuous_MountainCarEnv": ("state",),
    "classic_control.mountain_car:MountainCarEnv": ("state",),
    "classic_control.pendulum:PendulumEnv": ("state", "last_u"),
    "toy_text.blackjack:BlackjackEnv": (
        "dealer",
        "player",
        "dealer_top_card_suit",
        "dealer_top_card_value_str",
    ),
    "toy_text.cliffwalking:CliffWalkingEnv": ("s", "lastaction"),
    "toy_text.taxi:TaxiEnv": ("s", "lastaction", "fickle_step", "taxi_orientation"),
}
_WRAPPER_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "atari_preprocessing:AtariPreprocessing": ("obs_buffer", "lives", "game_over"),
    "common:Autoreset": ("autoreset",),
    "common:OrderEnforcing": (),
    "common:TimeLimit": (),
    "rendering:RecordVideo": ("step_id", "episode_id"),
    "stateful_action:StickyAction": (
        "last_action",
        "is_sticky_actions",
        "num_repeats",
        "repeats_taken",
    ),
    "stateful_observation:DelayObservation": ("observation_queue",),
    "stateful_observation:FrameStackObservation": ("obs_queue", "padding_value"),
    "stateful_observation:MaxAndSkipObservation": (),
    "stateful_observation:NormalizeObservation": ("obs_rms",),
    "stateful_observation:TimeAwareObservation": ("timesteps",),
    "stateful_reward:NormalizeReward": ("return_rms", "discounted_reward"),
    "vector.stateful_observation:NormalizeObservation": ("obs_rms",),
    "vector.stateful_reward:NormalizeReward": ("return_rms", "accumulated_reward"),
}
# These change single steps only. Their drawings and checks are not part of the state.
STATELESS = tuple(
    _WRAPPERS + name
    for name in (
        "array_conversion:ArrayConversion",
        "common:PassiveEnvChecker",
        "jax_to_numpy:JaxToNumpy",
        "jax_to_torch:JaxToTorch",
        "numpy_to_torch:NumpyToTorch",
        "rendering:AddWhiteNoise",
        "rendering:HumanRendering",
        "rendering:ObstructView",
        "rendering:RenderCollection",
        "stateful_action:RepeatAction",
        "transform_action:ClipAction",
        "transform_action:DiscretizeAction",
        "transform_action:RescaleAction",
        "transform_action:TransformAction",
        "transform_observation:AddRenderObservation",
        "transform_observation:DiscretizeObservation",
        "transform_observation:DtypeObservation",
        "transform_observation:FilterObservation",
        "transform_observation:FlattenObservation",
        "transform_observation:GrayscaleObservation",
        "transform_observation:RescaleObservation",
        "transform_observation:ReshapeObservation",
        "transform_observation:ResizeObservation",
        "transform_observation:TransformObservation",
        "transform_reward:ClipReward",
        "transform_reward:TransformReward",
        "vector.dict_info_to_list:DictInfoToList",
        "vector.vectorize_action:ClipAction",
        "vector.vectorize_action:RescaleAction",
        "vector.vectorize_action:TransformAction",
        "vector.vectorize_observation:DtypeObservation",
        "vector.vectorize_observation:FilterObservation",
        "vector.vectorize_observation:FlattenObservation",
        "vector.vectorize_observation:GrayscaleObservation",
        "vector.vectorize_observation:RescaleObservation",
        "vector.vectorize_observation:ReshapeObservation",
        "vector.vectorize_observation:ResizeObservation",
        "vector.vectorize_observation:TransformObservation",
        "vector.vectorize_reward:ClipReward",
        "vector.vectorize_reward:TransformReward",
    )
)


def read(names: Sequence[str], env: Any) -> dict[str, Any]:
    """Returns the values of attributes; the caller copies them.

    An attribute that an environment sets in its first reset may be missing. A
    `collections.deque` becomes a list, and Gymnasium's running mean and variance
    becomes a dictionary.
    """
    return {name: _as_nest(getattr(env, name)) for name in names if hasattr(env, name)}


def read_all(names: Sequence[str], wrapper: Any) -> dict[str, Any]:
    """Returns the values of attributes as `read` does; none may be missing.

    Raises:
      NotImplementedError: If one is missing.
    """
    try:
        return {name: _as_nest(internals.look_up(wrapper, name)) for name in names}
    except AttributeError as error:
        raise NotImplementedError(
            f"{type(wrapper).__qualname__}.get_state: {error}; this release of "
            "Gymnasium keeps the state elsewhere. Say how it is read and set with "
            "tfrl.environments.gymnasium.state_adapters.register."
        ) from None


def write(names: Sequence[str], env: Any, state: dict[str, Any]) -> None:
    """Sets attributes to the values that `read` returned."""
    for name in names:
        if name not in state:
            continue
        value, present = state[name], getattr(env, name, None)
        if isinstance(present, collections.deque):
            present.clear()
            present.extend(value)
        elif _is_running_moments(present):
            for moment in _MOMENTS:
                setattr(present, moment, value[moment])
        else:
            setattr(env, name, value)


def _as_nest(value: Any) -> Any:
    if isinstance(value, collections.deque):
        return list(value)
    if _is_running_moments(value):
        return {moment: getattr(value, moment) for moment in _MOMENTS}
    return value


def _is_running_moments(value: Any) -> bool:
    return type(value).__name__ == "RunningMeanStd"


def _of_environment(names: Sequence[str]) -> tuple[Callable, Callable]:
    return functools.partial(read, names), functools.partial(write, names)


def of_wrapper(names: Sequence[str]) -> tuple[Callable, Callable]:
    """Returns functions that read and set attributes, none of which may be missing."""
    return functools.partial(read_all, names), functools.partial(write, names)


_LAKE = ("s", "lastaction")
_STATISTICS = (
    "episode_count",
    "episode_returns",
    "episode_lengths",
    "time_queue",
    "return_queue",
    "length_queue",
)


def _get_lake(env: Any) -> dict[str, Any]:
    return {**read(_LAKE, env), "desc": env.desc}


def _set_lake(env: Any, state: dict[str, Any]) -> None:
    # A lake without a name or a map is drawn at random when it is made.
    if not np.array_equal(env.desc, state["desc"]):
        raise ValueError(
            f"state: got the state of the map {state['desc'].tolist()}, expected the "
            f"map {env.desc.tolist()}; make the environment with the same desc."
        )
    write(_LAKE, env, state)


def _of_statistics(start: str, *names: str) -> tuple[Callable, Callable]:
    """Returns functions for statistics of episodes; `start` names the starting time."""

    def get_state(env: Any) -> dict[str, Any]:
        elapsed = time.perf_counter() - getattr(env, start)
        return {**read_all((*_STATISTICS, *names), env), "elapsed": elapsed}

    def set_state(env: Any, state: dict[str, Any]) -> None:
        write((*_STATISTICS, *names), env, state)
        # The clock starts from a different time in every process.
        setattr(env, start, time.perf_counter() - state["elapsed"])

    return get_state, set_state


# The functions that read and set the state, by module and class.
ADAPTERS: dict[str, tuple[Callable, Callable]] = {
    **{_ENVIRONMENTS + k: _of_environment(names) for k, names in _ATTRIBUTES.items()},
    **{
        _WRAPPERS + k: of_wrapper((*names, *internals.WRAPPER_STATE.get(k, ())))
        for k, names in _WRAPPER_ATTRIBUTES.items()
    },
    _ENVIRONMENTS + "toy_text.frozen_lake:FrozenLakeEnv": (_get_lake, _set_lake),
    _WRAPPERS + "common:RecordEpisodeStatistics": _of_statistics("episode_start_time"),
    _WRAPPERS + "vector.common:RecordEpisodeStatistics": _of_statistics(
        "episode_start_times", "prev_dones"
    ),
}
