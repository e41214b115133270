"""The state of Gymnasium's vector environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl.compilation import internals

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


def adapters(
    get_state: Callable[[Any], Any], set_state: Callable[[Any, Any], None]
) -> dict[str, tuple[Callable, Callable]]:
    """Returns the functions that read and set the state, by module and class.

    Args:
      get_state: Returns the state of a member.
      set_state: Sets the state of a member.
    """

    def get_members(env: Any) -> dict[str, Any]:
        return {
            "members": [get_state(member) for member in env.envs],
            "to_reset": internals.look_up(env, internals.MEMBERS_TO_RESET),
        }

    def set_members(env: Any, state: dict[str, Any]) -> None:
        for member, own in zip(env.envs, state["members"], strict=True):
            set_state(member, own)
        setattr(env, internals.MEMBERS_TO_RESET, state["to_reset"])

    return {
        "gymnasium.vector.sync_vector_env:SyncVectorEnv": (get_members, set_members),
        **{name: (_refusal(text),) * 2 for name, text in _REFUSED.items()},
    }


def _refusal(text: str) -> Callable[..., Any]:
    """Returns a function that raises a NotImplementedError with `text`."""

    def refuse(*env_and_state: Any) -> Any:
        raise NotImplementedError(text)

    return refuse
