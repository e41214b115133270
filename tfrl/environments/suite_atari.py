"""Loads Atari 2600 games with the usual preprocessing.

Needs the extra: `pip install 'tfrl[atari]'`. The games themselves come with ale-py.
`load_batch` steps several games at once, on ale-py's threads in C++ or in processes.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from tfrl.environments import (
    atari_batch,
    atari_console,
    atari_preprocessing,
    atari_wrappers,
    batched_py_environment,
    extras,
    parallel_py_environment,
    py_environment,
    suite_gym,
)
from tfrl.utils import number_checks

DEFAULT_ATARI_GYM_WRAPPERS = (atari_preprocessing.AtariPreprocessing,)
DEFAULT_ATARI_GYM_WRAPPERS_WITH_STACKING = (
    *DEFAULT_ATARI_GYM_WRAPPERS,
    atari_wrappers.FrameStack4,
)

_OLD_NAME = re.compile(
    r"(?P<game>[A-Za-z0-9]+?)(?P<ram>-ram)?"
    r"(?P<mode>NoFrameskip|Deterministic)?-(?P<version>v[04])$"
)
# The names of games whose actions `AtariPreprocessing` repeats: games that repeat none
# themselves, or whose own repetition can be turned off.
_REPEATED_BY_US = re.compile(
    r"ALE/(?P<game>\w+)-v5$|(?P<old>[A-Za-z0-9]+?)NoFrameskip-v(?P<version>[04])$"
)
_MODES = ("NoFrameskip", "Deterministic")
EMULATORS = ("ale-py", "gymnasium")
_MODULES = ("ale_py", "cv2")
_FRAME_LIMIT = "max_num_frames_per_episode"
# What ale-py registers its games with; the preprocessing replaces the number of frames.
_KWARGS = {"game", "repeat_action_probability", "frameskip", _FRAME_LIMIT}


def is_available() -> bool:
    """Whether the extra is installed."""
    return extras.is_installed(*_MODULES)


def game(
    name: str = "Pong",
    obs_type: str = "image",
    mode: str = "NoFrameskip",
    version: str = "v0",
) -> str:
    """Returns the full name of a game for `load`, such as "PongNoFrameskip-v0".

    Args:
      name: The game, such as "Pong" or "SpaceInvaders".
      obs_type: "image", or "ram" for the console's 128 bytes of memory.
      mode: "NoFrameskip" for every frame, "Deterministic" for every fourth (every
        third of SpaceInvaders), "" for every second to fourth at random.
      version: "v0" repeats the last action with probability 0.25 (sticky actions),
        "v4" never does.

    Raises:
      ValueError: If `obs_type`, `mode` or `version` has another value.
    """
    for argument, value, allowed in (
        ("obs_type", obs_type, ("image", "ram")),
        ("mode", mode, ("", *_MODES)),
        ("version", version, ("v0", "v4")),
    ):
        if value not in allowed:
            raise ValueError(
                f"{argument}: got {value!r}, expected one of {allowed}; the names of "
                "v5 need no helper: 'ALE/Pong-v5'."
            )
    return f"{name}{'-ram' if obs_type == 'ram' else ''}{mode}-{version}"


def load(
    environment_name: str,
    discount: float = 1.0,
    max_episode_steps: float | None = None,
    gym_env_wrappers: suite_gym.GymEnvWrappers = DEFAULT_ATARI_GYM_WRAPPERS,
    env_wrappers: suite_gym.EnvWrappers = (),
    spec_dtype_map: Mapping[type, Any] | None = None,
    *,
    gym_kwargs: Mapping[str, Any] | None = None,
) -> py_environment.PyEnvironment:
    """Makes a game and wraps it.

    By default observations are uint8 `[84, 84, 1]`, one for every four frames;
    `DEFAULT_ATARI_GYM_WRAPPERS_WITH_STACKING` gives `[84, 84, 4]`. Some games,
    such as "ALE/Pong-v5" and "Pong-v4", repeat actions themselves; this is turned off
    if `AtariPreprocessing` is the first wrapper.

    The console truncates games after 108,000 frames, half an hour of play (27,000 steps
    of four frames): Machado et al. 2018.

    Args:
      environment_name: A name such as "ALE/Pong-v5" (sticky actions with probability
        0.25, the game's own actions; `gym_kwargs` changes both), or an older name that
        `game` returns, such as "PongNoFrameskip-v4".
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps, of `frame_skip` frames each, after which a
        game is truncated; None or 0 for the console's limit alone.
      gym_env_wrappers: Applied in turn to the Gymnasium environment.
      env_wrappers: Applied in turn to the `PyEnvironment`, after the time limit.
      spec_dtype_map: Maps classes of spaces to the dtypes of their specs; uint8 for a
        Box by default.
      gym_kwargs: Keyword arguments for `ale_py`'s environment, such as
        `full_action_space`, `mode`, `difficulty`, `repeat_action_probability`.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such game.
    """
    spec, name_kwargs = _find_spec(environment_name)
    kwargs = {
        **_preprocessing_kwargs(gym_env_wrappers),
        **name_kwargs,
        **(gym_kwargs or {}),
    }
    gym_env = gymnasium.make(
        spec,
        max_episode_steps=-1,
        **{"disable_env_checker": True, **suite_gym.make_kwargs(spec, kwargs)},
    )
    return suite_gym.wrap_env(
        gym_env,
        discount=discount,
        max_episode_steps=(
            spec.max_episode_steps
            if max_episode_steps is None
            else math.ceil(max_episode_steps)
        ),
        gym_env_wrappers=gym_env_wrappers,
        time_limit_wrapper=atari_wrappers.AtariTimeLimit,
        env_wrappers=env_wrappers,
        spec_dtype_map=spec_dtype_map or {gymnasium.spaces.Box: np.uint8},
    )


def load_batch(
    environment_name: str,
    num_envs: int,
    discount: float = 1.0,
    max_episode_steps: int | None = None,
    *,
    noop_max: int = 0,
    fire_on_reset: bool = False,
    terminal_on_life_loss: bool = False,
    clip_rewards: bool = False,
    emulator: str = "ale-py",
) -> py_environment.PyEnvironment:
    """Makes a batch of a game with stacked pictures, uint8 `[B, 84, 84, 4]`.

    Actions are repeated for four frames, and the maximum of the last two is shown, as
    `AtariPreprocessing` and `FrameStack4` do. A single game is played by these. Several
    games are played by "ale-py", whose own preprocessing in C++ runs on a thread for
    each game, or by "gymnasium", these wrappers in a process for each game, which take
    twice the processor time.

    From the same seed of the console and the same number of no-ops, both show the same
    pictures and rewards, frame by frame. "ale-py" differs as follows:

    - A seed gives other random numbers, so other no-ops and other sticky actions.
    - With `terminal_on_life_loss`, the action in which a life is lost goes on to the
      end of its four frames, and the LAST step shows them. "gymnasium" stops at the
      frame of the loss, up to three frames earlier, and shows an older picture.
    - The next episode begins with that picture; with "gymnasium", with the screen.
    - A game that is truncated after 108,000 frames ends with a whole action, up to
      three frames later.

    Both save their states, so runs resume bit for bit. "ale-py" saves the actions of
    each game since its last seed, and plays them again: 5,000 on average, at most
    10,000 and those of a game, each in about a millisecond.

    Args:
      environment_name: A name such as "ALE/Pong-v5" (sticky actions with probability
        0.25) or "PongNoFrameskip-v4" (no sticky actions).
      num_envs: The number of members.
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps, of four frames each, after which a game is
        truncated; None or 0 for 27,000.
      noop_max: The greatest number of frames without an action at the start of a game.
      fire_on_reset: Whether FIRE is pressed at the start of every episode, in games
        that have it; see `FireOnReset`.
      terminal_on_life_loss: Whether a lost life terminates the episode, while the game
        continues.
      clip_rewards: Whether each reward is replaced by its sign.
      emulator: "ale-py" or "gymnasium", for several games.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such game or emulator, or a number is too small.
    """
    if emulator not in EMULATORS:
        raise ValueError(
            f"emulator: got {emulator!r}, expected one of {EMULATORS}; leave it out "
            "for ale-py (suite_envpool loads the games of EnvPool)."
        )
    number_checks.check_sizes(num_envs=num_envs)
    gym_env_wrappers: list[Callable[[gymnasium.Env], gymnasium.Env]] = [
        functools.partial(
            atari_preprocessing.AtariPreprocessing,
            terminal_on_life_loss=terminal_on_life_loss,
            noop_max=noop_max,
        )
    ]
    if fire_on_reset:
        gym_env_wrappers.append(atari_wrappers.FireOnReset)
    if clip_rewards:
        gym_env_wrappers.append(_clip_rewards)
    gym_env_wrappers.append(atari_wrappers.FrameStack4)
    make = functools.partial(
        load, environment_name, discount, max_episode_steps, gym_env_wrappers
    )
    # An error here does not come from a thread or a child process.
    single: Any = make()
    if num_envs == 1:
        return batched_py_environment.BatchedPyEnvironment(
            [single], multithreading=False
        )
    with single:
        if emulator == "gymnasium":
            return parallel_py_environment.ParallelPyEnvironment(
                [make] * num_envs, start_serially=False
            )
        return _on_threads(
            environment_name,
            num_envs,
            single,
            discount,
            noop_max,
            atari_batch.Rules(
                max_episode_steps=getattr(single, "duration", sys.maxsize),
                max_num_frames=single.ale.getInt(_FRAME_LIMIT) or sys.maxsize,
                fire_on_reset=fire_on_reset and single.has_fire,
                terminal_on_life_loss=terminal_on_life_loss,
                clip_rewards=clip_rewards,
            ),
        )


def _on_threads(
    environment_name: str,
    num_envs: int,
    single: Any,
    discount: float,
    noop_max: int,
    rules: atari_batch.Rules,
) -> atari_batch.AtariBatch:
    """Returns games on threads, with the specs and the game of `single`.

    Raises:
      ValueError: If the game has a setting that only the games in processes have.
    """
    kwargs = _find_spec(environment_name)[0].kwargs
    unknown = sorted(name for name in kwargs.keys() - _KWARGS if kwargs[name])
    if unknown:
        raise ValueError(
            f"environment_name: got {environment_name!r}, which is registered with "
            f"{', '.join(unknown)}, expected a game with no more settings than "
            f"{', '.join(sorted(_KWARGS))}; play it by emulator='gymnasium'."
        )
    consoles = [
        atari_console.Console(
            kwargs["game"], single.ale.getFloat("repeat_action_probability"), noop_max
        )
        for _ in range(num_envs)
    ]
    return atari_batch.AtariBatch(
        consoles,
        environment_name,
        single.time_step_spec(),
        single.action_spec(),
        discount,
        rules,
    )


def check_game(environment_name: str) -> None:
    """Checks the name of a game, without TensorFlow.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such game.
    """
    _find_spec(environment_name)


def _find_spec(environment_name: str) -> tuple[Any, dict[str, Any]]:
    """Returns the registered spec of a game, and keyword arguments for it."""
    extras.require("suite_atari", "pip install 'tfrl[atari]'", *_MODULES)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # A worker process has the names from its parent, and ale-py registers them too.
        import ale_py

    gymnasium.register_envs(ale_py)
    # ale-py's environments do so as well, but only after printing a greeting.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    name, kwargs = _registered(environment_name)
    return suite_gym.find_spec(name), kwargs


def is_game(environment_name: str) -> bool:
    """Whether a name is the name of a game for `load_batch`."""
    return _REPEATED_BY_US.match(environment_name) is not None


def _clip_rewards(env: gymnasium.Env) -> gymnasium.Env:
    return gymnasium.wrappers.TransformReward(
        env, lambda reward: float(np.sign(float(reward)))
    )


def _registered(environment_name: str) -> tuple[str, dict[str, Any]]:
    """Returns the name that ale-py registers, and keyword arguments for it.

    Of the older names, ale-py registers only names like "Pong-v4" and
    "PongNoFrameskip-v4".
    """
    match = _OLD_NAME.match(environment_name)
    if match is None:
        return environment_name, {}
    kwargs: dict[str, Any] = {"obs_type": "ram"} if match["ram"] else {}
    if match["mode"] != "Deterministic":
        return f"{match['game']}{match['mode'] or ''}-{match['version']}", kwargs
    # With four, the blinking lasers of Space Invaders are invisible: Mnih et al. 2013.
    kwargs["frameskip"] = 3 if match["game"] == "SpaceInvaders" else 4
    return f"{match['game']}-{match['version']}", kwargs


def _preprocessing_kwargs(gym_env_wrappers: suite_gym.GymEnvWrappers) -> dict[str, Any]:
    """Returns the keyword arguments for the game if `AtariPreprocessing` wraps it.

    The wrapper repeats the actions, and takes its pictures from the console, so the
    pictures of the environment need no colours.
    """
    if not gym_env_wrappers:
        return {}
    first = gym_env_wrappers[0]
    while isinstance(first, functools.partial):
        first = first.func
    if not (
        isinstance(first, type)
        and issubclass(first, gymnasium.wrappers.AtariPreprocessing)
    ):
        return {}
    return {"obs_type": "grayscale", "frameskip": 1}
