"""The state of environments and wrappers that keep it in a few attributes: a table."""

from __future__ import annotations

import collections
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.compilation import internals


class Adapter(NamedTuple):
    """Reads and sets the state of one class, without that of the layers inside."""

    get_state: Callable[[Any], Any]
    set_state: Callable[[Any, Any], None]


_MOMENTS = ("mean", "var", "count")
_PLAY = "gymnasium.envs."
_WRAP = "gymnasium.wrappers."
_OURS = "tfrl.environments."
# The attributes that hold the state, by module and class; private ones of Gymnasium's
# are in `internals.WRAPPER_STATE`.
_ATTRIBUTES = {
    _PLAY + "classic_control.acrobot:AcrobotEnv": "state",
    _PLAY + "classic_control.cartpole:CartPoleEnv": "state steps_beyond_terminated",
    _PLAY + "classic_control.cartpole:CartPoleVectorEnv": (
        "state steps prev_done steps_beyond_terminated low high"
    ),
    _PLAY
    + "classic_control.continuous_mountain_car:Continuous_MountainCarEnv": "state",
    _PLAY + "classic_control.mountain_car:MountainCarEnv": "state",
    _PLAY + "classic_control.pendulum:PendulumEnv": "state last_u",
    _PLAY + "toy_text.blackjack:BlackjackEnv": (
        "dealer player dealer_top_card_suit dealer_top_card_value_str"
    ),
    _PLAY + "toy_text.cliffwalking:CliffWalkingEnv": "s lastaction",
    _PLAY + "toy_text.taxi:TaxiEnv": "s lastaction fickle_step taxi_orientation",
    _WRAP + "atari_preprocessing:AtariPreprocessing": "obs_buffer lives game_over",
    _WRAP + "common:Autoreset": "autoreset",
    _WRAP + "common:OrderEnforcing": "",
    _WRAP + "common:TimeLimit": "",
    _WRAP + "rendering:RecordVideo": "step_id episode_id",
    _WRAP + "stateful_action:StickyAction": (
        "last_action is_sticky_actions num_repeats repeats_taken"
    ),
    _WRAP + "stateful_observation:DelayObservation": "observation_queue",
    _WRAP + "stateful_observation:FrameStackObservation": "obs_queue padding_value",
    _WRAP + "stateful_observation:MaxAndSkipObservation": "",
    _WRAP + "stateful_observation:NormalizeObservation": "obs_rms",
    _WRAP + "stateful_observation:TimeAwareObservation": "timesteps",
    _WRAP + "stateful_reward:NormalizeReward": "return_rms discounted_reward",
    _WRAP + "vector.stateful_observation:NormalizeObservation": "obs_rms",
    _WRAP + "vector.stateful_reward:NormalizeReward": "return_rms accumulated_reward",
    _OURS + "atari_preprocessing:AtariPreprocessing": (
        "obs_buffer lives game_over life_lost _last_info _last_screen"
    ),
    _OURS + "atari_wrappers:FrameStack4": "_stack",
    _OURS + "atari_wrappers:FireOnReset": "",
    "minigrid.wrappers:DirectionObsWrapper": "goal_position",
    "minigrid.wrappers:ReseedWrapper": "seed_idx",
}
# Classes that change single steps only, by module. Their drawings, their checks and
# caches of what they are given are not part of the state.
_STATELESS = {
    _WRAP + "array_conversion": "ArrayConversion",
    _WRAP + "common": "PassiveEnvChecker",
    _WRAP + "jax_to_numpy": "JaxToNumpy",
    _WRAP + "jax_to_torch": "JaxToTorch",
    _WRAP + "numpy_to_torch": "NumpyToTorch",
    _WRAP + "rendering": "AddWhiteNoise HumanRendering ObstructView RenderCollection",
    _WRAP + "stateful_action": "RepeatAction",
    _WRAP + "transform_action": (
        "ClipAction DiscretizeAction RescaleAction TransformAction"
    ),
    _WRAP + "transform_observation": (
        "AddRenderObservation DiscretizeObservation DtypeObservation FilterObservation "
        "FlattenObservation GrayscaleObservation RescaleObservation ReshapeObservation "
        "ResizeObservation TransformObservation"
    ),
    _WRAP + "transform_reward": "ClipReward TransformReward",
    _WRAP + "vector.dict_info_to_list": "DictInfoToList",
    _WRAP + "vector.vectorize_action": "ClipAction RescaleAction TransformAction",
    _WRAP + "vector.vectorize_observation": (
        "DtypeObservation FilterObservation FlattenObservation GrayscaleObservation "
        "RescaleObservation ReshapeObservation ResizeObservation TransformObservation"
    ),
    _WRAP + "vector.vectorize_reward": "ClipReward TransformReward",
    "minigrid.wrappers": (
        "DictObservationSpaceWrapper FlatObsWrapper FullyObsWrapper ImgObsWrapper "
        "NoDeath OneHotPartialObsWrapper RGBImgObsWrapper RGBImgPartialObsWrapper "
        "StochasticActionWrapper SymbolicObsWrapper ViewSizeWrapper"
    ),
}
_LAKE = ("s", "lastaction")
_STATISTICS = (
    *("episode_count", "episode_returns", "episode_lengths"),
    *("time_queue", "return_queue", "length_queue"),
)


def _read(names: Sequence[str], layer: Any) -> dict[str, Any]:
    """Returns the values of attributes; the caller copies them.

    An attribute that an environment sets in its first reset may be missing; those of a
    wrapper may not. A `collections.deque` becomes a list, and Gymnasium's running mean
    and variance becomes a dictionary.

    Raises:
      NotImplementedError: If an attribute of a wrapper is missing.
    """
    values = {}
    for name in names:
        try:
            values[name] = _as_nest(internals.look_up(layer, name))
        except AttributeError as error:
            if layer is layer.unwrapped:
                continue
            raise NotImplementedError(
                f"{type(layer).__qualname__}.get_state: {error}; this release of "
                "Gymnasium keeps the state elsewhere. Say how it is read and set with "
                "tfrl.environments.gymnasium.state_adapters.register."
            ) from None
    return values


def _write(names: Sequence[str], layer: Any, state: dict[str, Any]) -> None:
    """Sets attributes to the values that `_read` returned."""
    for name in names:
        if name not in state:
            continue
        value, present = state[name], getattr(layer, name, None)
        if isinstance(present, collections.deque):
            present.clear()
            present.extend(value)
        elif _is_running_moments(present):
            for moment in _MOMENTS:
                setattr(present, moment, value[moment])
        else:
            setattr(layer, name, value)


def _as_nest(value: Any) -> Any:
    if isinstance(value, collections.deque):
        return list(value)
    if _is_running_moments(value):
        return {moment: getattr(value, moment) for moment in _MOMENTS}
    return value


def _is_running_moments(value: Any) -> bool:
    return type(value).__name__ == "RunningMeanStd"


def _of_attributes(names: Sequence[str]) -> Adapter:
    return Adapter(functools.partial(_read, names), functools.partial(_write, names))


def _get_lake(env: Any) -> dict[str, Any]:
    return {**_read(_LAKE, env), "desc": env.desc}


def _set_lake(env: Any, state: dict[str, Any]) -> None:
    # A lake without a name or a map is drawn at random when it is made.
    if not np.array_equal(env.desc, state["desc"]):
        raise ValueError(
            f"state: got the state of the map {state['desc'].tolist()}, expected the "
            f"map {env.desc.tolist()}; make the environment with the same desc."
        )
    _write(_LAKE, env, state)


def _of_statistics(start: str, *names: str) -> Adapter:
    """Returns functions for statistics of episodes; `start` names the starting time."""

    def get_state(env: Any) -> dict[str, Any]:
        elapsed = time.perf_counter() - getattr(env, start)
        return {**_read((*_STATISTICS, *names), env), "elapsed": elapsed}

    def set_state(env: Any, state: dict[str, Any]) -> None:
        _write((*_STATISTICS, *names), env, state)
        # The clock starts from a different time in every process.
        setattr(env, start, time.perf_counter() - state["elapsed"])

    return Adapter(get_state, set_state)


def _get_nothing(layer: Any) -> None:
    """Returns the state of a class without a state."""


def _set_nothing(layer: Any, state: None) -> None:
    """Sets the state of a class without a state."""


_OF_COUNTS = Adapter(
    lambda wrapper: list(wrapper.counts.items()),
    lambda wrapper, state: setattr(wrapper, "counts", dict(state)),
)
NOTHING = Adapter(_get_nothing, _set_nothing)
# By module and class, so that no module is imported before it is used.
ADAPTERS: dict[str, Adapter] = {
    **{
        f"{module}:{name}": NOTHING
        for module, names in _STATELESS.items()
        for name in names.split()
    },
    **{
        kind: _of_attributes(
            (
                *names.split(),
                *internals.WRAPPER_STATE.get(kind.removeprefix(_WRAP), ()),
            )
        )
        for kind, names in _ATTRIBUTES.items()
    },
    _PLAY + "toy_text.frozen_lake:FrozenLakeEnv": Adapter(_get_lake, _set_lake),
    _WRAP + "common:RecordEpisodeStatistics": _of_statistics("episode_start_time"),
    _WRAP + "vector.common:RecordEpisodeStatistics": _of_statistics(
        "episode_start_times", "prev_dones"
    ),
    "minigrid.wrappers:ActionBonus": _OF_COUNTS,
    "minigrid.wrappers:PositionBonus": _OF_COUNTS,
}
