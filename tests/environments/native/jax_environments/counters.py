"""A small environment in the forms of gymnax, Brax and dm_env.

A member counts what its actions add, from a random start of 0 or 1. It terminates at 3
and is truncated after four steps; the reward is the action.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from tfrl.specs import array_spec

ACTION = array_spec.BoundedArraySpec((), "int32", 0, 1)
LIMIT = 4
GOAL = 3


class State(NamedTuple):
    count: Any
    time: Any
    key: Any


def _begin(key):
    start = jax.random.bernoulli(key).astype(jnp.int32)
    return State(start, 0, jax.random.fold_in(key, 1))


def _next(state, action):
    return State(state.count + action, state.time + 1, jax.random.split(state.key)[0])


def _observation(state):
    return {"count": state.count.astype(jnp.float32), "time": state.time * jnp.ones(2)}


class Gymnax:
    def reset(self, key, params):
        state = _begin(key)
        return _observation(state), state

    def step(self, key, state, action, params):
        state = _next(state, action)
        ends = state.count >= params, state.time >= LIMIT
        return _observation(state), state, action, *ends, {}


class BraxState(NamedTuple):
    inner: Any
    obs: Any
    reward: Any
    done: Any
    info: Any


class Brax:
    def reset(self, key):
        state = _begin(key)
        zero = jnp.zeros(())
        return BraxState(state, _observation(state), zero, zero, {"truncation": zero})

    def step(self, state, action):
        inner = _next(state.inner, action)
        goal, late = inner.count >= GOAL, inner.time >= LIMIT
        return BraxState(
            inner,
            _observation(inner),
            action.astype(jnp.float32),
            (goal | late).astype(jnp.float32),
            {"truncation": (late & ~goal).astype(jnp.float32)},
        )


class TimeStep(NamedTuple):
    step_type: Any
    reward: Any
    discount: Any
    observation: Any


class DmEnv:
    def reset(self, key):
        state = _begin(key)
        return state, TimeStep(0, 0.0, 1.0, _observation(state))

    def step(self, state, action):
        state = _next(state, action)
        goal, late = state.count >= GOAL, state.time >= LIMIT
        return state, TimeStep(
            jnp.where(goal | late, 2, 1),
            action.astype(jnp.float32),
            jnp.where(goal, 0.0, 1.0),
            _observation(state),
        )


MADE = {
    "gymnax": (Gymnax(), {"params": GOAL}),
    "brax": (Brax(), {}),
    "dm_env": (DmEnv(), {}),
}
