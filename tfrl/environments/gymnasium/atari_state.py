"""The state of ale-py's games.

ALE saves the console and its random numbers, but not the action that the console
repeats if actions are sticky. That action cannot be read, either. `get_state` finds it
by its effect: it plays a few frames from the current state, and then plays them again
with each possible repeated action, until the outcome is the same. The console then
returns to its state; only its screen shows one of these frames until the next step.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

_STICKINESS = "repeat_action_probability"
# The probability that an action is not taken in any of the frames that are played.
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
    """Returns the action that is repeated if the next one is not taken, or None."""
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
    """Restores `state` with `action` as the action to repeat."""
    ale.reset_game()
    for _ in range(_num_frames(ale)):
        ale.act(action)
    ale.restoreState(state)


def _play_on(ale: Any) -> list[bytes]:
    """Plays the next frames; returns their states, which show the repeated action."""
    if ale.game_over():
        # Only a reset leaves this state, and it does not change the repeated action.
        ale.reset_game()
    states = []
    for _ in range(_num_frames(ale)):
        ale.act(ale.getLegalActionSet()[0])
        states.append(ale.cloneState(include_rng=True).serialize())
    return states


def _num_frames(ale: Any) -> int:
    """Returns the number of frames within which an action is taken almost surely."""
    stickiness = min(ale.getFloat(_STICKINESS), 0.99)
    return math.ceil(math.log(_CHANCE_OF_FAILURE) / math.log(stickiness))
