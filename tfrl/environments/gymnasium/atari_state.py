"""The state of ale-py's games, and of the wrappers for them.

ALE saves the console and its random numbers, but not the action that the console
repeats if actions are sticky. That action cannot be read either. `get_state` finds it
by what it does: the console is played on for a few frames, and then again after each of
the possible actions, until the outcome is the same. The console then returns to where
it was; until the next step only its screen shows one of these frames.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from tfrl.environments.gymnasium import attribute_state

_STICKINESS = "repeat_action_probability"
_OURS = "tfrl.environments."
# With so small a chance an action is not taken in the frames that are played for it.
_CHANCE_OF_FAILURE = 1e-12


def get_state(env: Any) -> dict[str, Any]:
    """Returns the state of a game of `ale_py.env.AtariEnv`.

    Raises:
      NotImplementedError: If actions are sticky and continuous.
    """
    state = env.ale.cloneState(include_rng=True)
    return {"console": state.serialize(), "repeated": _repeated_action(env, state)}


def set_state(env: Any, state: dict[str, Any]) -> None:
    """Sets the state of a game."""
    ale_py = importlib.import_module("ale_py")
    console = ale_py.ALEState(state["console"])
    if state["repeated"] is None:
        env.ale.restoreState(console)
    else:
        _restore(env.ale, console, ale_py.Action(state["repeated"]))


def _repeated_action(env: Any, state: Any) -> int | None:
    """Returns the action that is repeated if the next is not taken; None for none."""
    ale = env.ale
    if ale.getFloat(_STICKINESS) <= 0:
        return None
    if env.continuous:
        raise NotImplementedError(
            "AtariEnv.get_state: got a game with sticky and continuous actions, whose "
            "last action cannot be read, expected one of both at most; make it with "
            f"{_STICKINESS}=0."
        )
    expected = _play_on(ale)
    for action in ale.getLegalActionSet():
        _restore(ale, state, action)
        if _play_on(ale) == expected:
            _restore(ale, state, action)
            return action.value
    ale.restoreState(state)
    raise NotImplementedError(
        "AtariEnv.get_state: the action that the console repeats was not found among "
        f"{len(ale.getLegalActionSet())}, expected one of them; make the game with "
        f"{_STICKINESS}=0."
    )


def _restore(ale: Any, state: Any, action: Any) -> None:
    """Restores `state` with `action` as the one that is repeated."""
    ale.reset_game()
    for _ in range(_num_frames(ale)):
        ale.act(action)
    ale.restoreState(state)


def _play_on(ale: Any) -> list[bytes]:
    """Returns the states of the next frames, which depend on the repeated action."""
    if ale.game_over():
        # Only a reset leaves this state, and does not change the repeated action.
        ale.reset_game()
    states = []
    for _ in range(_num_frames(ale)):
        ale.act(ale.getLegalActionSet()[0])
        states.append(ale.cloneState(include_rng=True).serialize())
    return states


def _num_frames(ale: Any) -> int:
    """Returns in how many frames an action is taken almost surely."""
    stickiness = min(ale.getFloat(_STICKINESS), 0.99)
    return math.ceil(math.log(_CHANCE_OF_FAILURE) / math.log(stickiness))


# The functions that read and set the state, by module and class.
ADAPTERS: dict[str, tuple[Callable, Callable]] = {
    "ale_py.env:AtariEnv": (get_state, set_state),
    _OURS + "atari_preprocessing:AtariPreprocessing": attribute_state.of_wrapper(
        ("obs_buffer", "lives", "game_over", "life_lost", "_last_info", "_last_screen")
    ),
    _OURS + "atari_wrappers:FrameStack4": attribute_state.of_wrapper(("_stack",)),
    _OURS + "atari_wrappers:FireOnReset": attribute_state.of_wrapper(()),
}
