"""Measures random play in environments of JAX's libraries, each in one program of JAX.

The libraries' own functions begin an ended episode again. It runs in tfrl's Python
environment, with the releases that tfrl's programs are made of.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from benchmarks.workers import serving


class _Environment(NamedTuple):
    """An environment that begins its episodes again.

    Attributes:
      reset: Takes a key, returns a state and an observation.
      step: Takes a key, a state and an action, returns a state, an observation and a
        reward.
      actions: The number of actions, or the shape of an action in [-1, 1].
    """

    reset: Callable[[Any], tuple[Any, Any]]
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any]]
    actions: int | tuple[int, ...]


def _of_gymnax(environment: Any, params: Any) -> _Environment:
    def reset(key: Any) -> tuple[Any, Any]:
        observation, state = environment.reset(key, params)
        return state, observation

    def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        results = environment.step(key, state, action, params)
        observation, state, reward, *_ = results
        return state, observation, reward

    space = environment.action_space(params)
    return _Environment(reset, step, int(getattr(space, "n", 0)) or space.shape)


def _gymnax(name: str) -> _Environment:
    import gymnax

    return _of_gymnax(*gymnax.make(name))


def _craftax(name: str) -> _Environment:
    from craftax import craftax_env

    made = craftax_env.make_craftax_env_from_name(name, auto_reset=True)
    return _of_gymnax(made, made.default_params)


def _brax(name: str) -> _Environment:
    from brax import envs

    made = envs.create(name, episode_length=1000, auto_reset=True)

    def reset(key: Any) -> tuple[Any, Any]:
        state = made.reset(key)
        return state, state.obs

    def step(_: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        state = made.step(state, action)
        return state, state.obs, state.reward

    return _Environment(reset, step, (made.action_size,))


def _jumanji(name: str) -> _Environment:
    import jumanji
    from jumanji import wrappers

    made = wrappers.AutoResetWrapper(jumanji.make(name))

    def reset(key: Any) -> tuple[Any, Any]:
        state, first = made.reset(key)
        return state, first.observation

    def step(_: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        state, following = made.step(state, action)
        return state, following.observation, following.reward

    return _Environment(reset, step, int(made.action_spec.num_values))


def _navix(name: str) -> _Environment:
    import navix

    made = navix.make(name)

    def reset(key: Any) -> tuple[Any, Any]:
        state = made.reset(key)
        return state, state.observation

    def step(_: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        state = made.step(state, action)
        return state, state.observation, state.reward

    return _Environment(reset, step, len(made.action_set))


def _xland(name: str) -> _Environment:
    import xminigrid
    from xminigrid import wrappers

    made, params = xminigrid.make(name)
    made = wrappers.GymAutoResetWrapper(made)

    def reset(key: Any) -> tuple[Any, Any]:
        first = made.reset(params, key)
        return first, first.observation

    def step(_: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        following = made.step(params, state, action)
        return following, following.observation, following.reward

    return _Environment(reset, step, made.num_actions(params))


def _pgx(name: str) -> _Environment:
    import pgx
    from pgx import experimental

    made = pgx.make(name)
    advance = experimental.auto_reset(made.step, made.init)

    def reset(key: Any) -> tuple[Any, Any]:
        state = made.init(key)
        return state, state.observation

    def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        state = advance(state, action, key)
        return state, state.observation, state.rewards

    return _Environment(reset, step, made.num_actions)


_LIBRARIES = {
    "gymnax": _gymnax,
    "brax": _brax,
    "jumanji": _jumanji,
    "craftax": _craftax,
    "navix": _navix,
    "xland": _xland,
    "pgx": _pgx,
}


def random_play(environment: str, envs: int) -> serving.Task:
    """Makes a compiled loop of random actions.

    Its fact is the time from the environment's name to the end of the first call.
    """
    started = time.perf_counter()
    library, _, name = environment.partition("/")
    reset, advance, actions = _LIBRARIES[library](name)

    def act(key: Any) -> Any:
        if isinstance(actions, int):
            return jax.random.randint(key, (envs,), 0, actions)
        return jax.random.uniform(key, (envs, *actions), minval=-1.0, maxval=1.0)

    def body(_: Any, carry: Any) -> Any:
        key, state, *_ = carry
        key, act_key, step_key = jax.random.split(key, 3)
        keys = jax.random.split(step_key, envs)
        return key, *jax.vmap(advance)(keys, state, act(act_key))

    @functools.partial(jax.jit, donate_argnums=0)
    def play(carry: Any, count: Any) -> Any:
        return jax.lax.fori_loop(0, count, body, carry)

    @jax.jit
    def start(key: Any) -> Any:
        state, observation = jax.vmap(reset)(jax.random.split(key, envs))
        carry = key, state, observation
        shapes = jax.eval_shape(body, 0, carry)
        return *carry, jnp.zeros(shapes[3].shape, shapes[3].dtype)

    carry = play(start(jax.random.PRNGKey(0)), 1)
    jax.block_until_ready(carry)
    facts = {"first call": time.perf_counter() - started}

    def run(count: int) -> dict[str, int]:
        nonlocal carry
        carry = play(carry, count)
        jax.block_until_ready(carry)
        return {"iterations": count, "environment steps": count * envs}

    return serving.Task(run, facts)


if __name__ == "__main__":
    serving.serve({"random_play": random_play}, ["jax"])
