"""Environments of JAX's libraries in one form: `Rules`, pure functions of one member.

Each function here takes an environment in the form of gymnax, of Brax or of dm_env, and
returns its rules. A library's own automatic reset is left out, because the observation
at an episode's end belongs to the episode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Step(NamedTuple):
    """What one step of a member returns; JAX traces it.

    Attributes:
      state: The next state, a pytree like that of a reset.
      observation: What the agent sees of it, a pytree.
      reward: A number.
      terminated: Whether the episode terminates here, a bool or a number.
      truncated: Whether it ends here without a terminal state.
    """

    state: Any
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any = False


class Rules(NamedTuple):
    """An environment as functions of one member that JAX can trace.

    Attributes:
      reset: `reset(key) -> (state, observation)`; the key is `jax.random.key`'s.
      step: `step(key, state, action) -> Step`. The state at an episode's end is the
        last one of the episode, and not the first one of the next.
      draws: Whether `step` uses its key.
    """

    reset: Callable[[Any], tuple[Any, Any]]
    step: Callable[[Any, Any, Any], Step]
    draws: bool = True


def gymnax(environment: Any, params: Any) -> Rules:
    """Returns the rules of an environment in the form of gymnax.

    Args:
      environment: It has `reset_env(key, params) -> (observation, state)` and
        `step_env(key, state, action, params) -> (observation, state, reward,
        terminated, info)`, or both as `reset` and `step`, without an automatic reset.
        `is_truncated(state, params)` says whether a time limit ends the episode;
        `step` may also return `truncated` after `terminated`.
      params: The parameters of the environment.
    """
    reset_env = getattr(environment, "reset_env", None) or environment.reset
    step_env = getattr(environment, "step_env", None) or environment.step
    is_truncated = getattr(environment, "is_truncated", None)

    def reset(key: Any) -> tuple[Any, Any]:
        observation, state = reset_env(key, params)
        return state, observation

    def step(key: Any, state: Any, action: Any) -> Step:
        observation, state, reward, terminated, *rest = step_env(
            key, state, action, params
        )
        truncated = rest[0] if len(rest) > 1 else False
        if is_truncated is not None:
            truncated = is_truncated(state, params)
        return Step(state, observation, reward, terminated, truncated)

    return Rules(reset, step)


def brax(environment: Any) -> Rules:
    """Returns the rules of an environment in the form of Brax.

    Args:
      environment: It has `reset(key) -> State` and `step(state, action) -> State`. A
        state has `obs`, `reward`, `done`, and `info`, a dictionary in which
        `truncation`, if present, says that `done` is no termination.
    """

    def reset(key: Any) -> tuple[Any, Any]:
        state = environment.reset(key)
        return state, state.obs

    def step(state: Any, action: Any) -> tuple[Any, ...]:
        state = environment.step(state, action)
        is_cut = state.info.get("truncation", 0) > 0
        return state, state.obs, state.reward, state.done > 0, is_cut

    return _without_keys(reset, step)


def dm_env(environment: Any) -> Rules:
    """Returns the rules of an environment in the form of dm_env, such as Jumanji's.

    Args:
      environment: It has `reset(key) -> (state, timestep)` and `step(state, action) ->
        (state, timestep)`. A time step has dm_env's `observation`, `reward`,
        `step_type` and `discount`: with the last step of an episode a discount of 0 is
        a termination, and any other a truncation.
    """

    def reset(key: Any) -> tuple[Any, Any]:
        state, time_step = environment.reset(key)
        return state, time_step.observation

    def step(state: Any, action: Any) -> tuple[Any, ...]:
        state, time_step = environment.step(state, action)
        ends = time_step.step_type == 2, time_step.discount != 0
        return state, time_step.observation, time_step.reward, *ends

    return _without_keys(reset, step)


def _without_keys(
    reset: Callable[[Any], tuple[Any, Any]], step: Callable[[Any, Any], tuple[Any, ...]]
) -> Rules:
    """Returns the rules of an environment whose state has the keys of its steps.

    Args:
      reset: As that of the rules.
      step: Returns a `Step`'s state, observation and reward, whether the episode ends
        here, and whether an end is a truncation.
    """

    def step_and_end(key: Any, state: Any, action: Any) -> Step:
        del key
        state, observation, reward, is_last, is_cut = step(state, action)
        # Not the bitwise negation of a bool of Python, which is no bool.
        ends = is_last & (is_cut == 0), is_last & (is_cut != 0)
        return Step(state, observation, reward, *ends)

    return Rules(reset, step_and_end, draws=False)
