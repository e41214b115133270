"""Measures DQN on gymnax's CartPole in one `lax.scan`, as PureJaxRL writes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import optax

from benchmarks.workers import serving

_BATCH = 64


class _Frames(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    ended: Any


class _Carry(NamedTuple):
    online: Any
    target: Any
    optimizer: Any
    buffer: _Frames
    state: Any
    observation: Any
    key: Any
    step: Any


class _Dqn:
    """The loop; `scan` does `length` iterations in one compiled call."""

    def __init__(self, envs: int, capacity: int, length: int) -> None:
        self._env, self._params = gymnax.make("CartPole-v1")
        self._envs, self._rows = envs, capacity // envs
        self._adam = optax.adam(1e-3)
        self.scan = jax.jit(
            lambda carry: jax.lax.scan(self._iteration, carry, None, length),
            donate_argnums=0,
        )

    def start(self) -> _Carry:
        key, net_key, env_key = jax.random.split(jax.random.PRNGKey(0), 3)
        online = _make_network(net_key)
        reset = jax.vmap(self._env.reset, (0, None))
        observation, state = reset(jax.random.split(env_key, self._envs), self._params)
        shape = (self._rows, self._envs)
        buffer = _Frames(
            jnp.zeros((*shape, 4)),
            jnp.zeros(shape, jnp.int32),
            jnp.zeros(shape),
            jnp.zeros((*shape, 4)),
            jnp.zeros(shape),
        )
        carry = _Carry(
            online,
            online,
            self._adam.init(online),
            buffer,
            state,
            observation,
            key,
            jnp.int32(0),
        )
        # An array that is donated must not occur twice in the carry.
        return jax.tree_util.tree_map(lambda x: jnp.array(x, copy=True), carry)

    def _iteration(self, carry: _Carry, _: None) -> tuple[_Carry, Any]:
        key, act_key, step_key, sample_key = jax.random.split(carry.key, 4)
        actions = self._act(carry, act_key)
        observation, state, reward, ended, *_ = jax.vmap(
            self._env.step, (0, 0, 0, None)
        )(
            jax.random.split(step_key, self._envs),
            carry.state,
            actions,
            self._params,
        )
        frames = _Frames(
            carry.observation,
            actions,
            reward,
            observation,
            ended.astype(jnp.float32),
        )
        row = carry.step % self._rows
        buffer = jax.tree_util.tree_map(
            lambda rows, new: rows.at[row].set(new), carry.buffer, frames
        )
        step = carry.step + 1
        batch = self._sample(buffer, step, sample_key)
        gradients = jax.grad(_loss)(carry.online, carry.target, batch)
        updates, optimizer = self._adam.update(gradients, carry.optimizer)
        online = optax.apply_updates(carry.online, updates)
        target = jax.lax.cond(
            carry.step % 5 == 0,
            lambda target: optax.incremental_update(online, target, 0.05),
            lambda target: target,
            carry.target,
        )
        carry = _Carry(online, target, optimizer, buffer, state, observation, key, step)
        return carry, reward.mean()

    def _act(self, carry: _Carry, key: Any) -> Any:
        explore_key, random_key = jax.random.split(key)
        greedy = jnp.argmax(_values(carry.online, carry.observation), -1)
        explores = jax.random.uniform(explore_key, (self._envs,)) < 0.1
        at_random = jax.random.randint(random_key, (self._envs,), 0, 2)
        return jnp.where(explores, at_random, greedy)

    def _sample(self, buffer: _Frames, filled: Any, key: Any) -> _Frames:
        row_key, env_key = jax.random.split(key)
        limit = jnp.minimum(filled, self._rows)
        rows = jax.random.randint(row_key, (_BATCH,), 0, limit)
        envs = jax.random.randint(env_key, (_BATCH,), 0, self._envs)
        return jax.tree_util.tree_map(lambda frames: frames[rows, envs], buffer)


def dqn(envs: int, capacity: int = 100_000) -> serving.Task:
    """Makes the loop; a call takes about a sixth of a second."""
    length = max(200, 4000 * 16 // (16 + envs))
    loop = _Dqn(envs, capacity, length)
    carry = loop.start()

    def run(count: int) -> dict[str, int]:
        nonlocal carry
        calls = -(-count // length)
        for _ in range(calls):
            carry, rewards = loop.scan(carry)
        jax.block_until_ready(rewards)
        iterations = calls * length
        return {"iterations": iterations, "environment steps": iterations * envs}

    return serving.Task(run)


def _make_network(key: Any) -> list[tuple[Any, Any]]:
    hidden, out = jax.random.split(key)
    return [
        (jax.random.normal(hidden, (4, 100)) / 2.0, jnp.zeros(100)),
        (jax.random.normal(out, (100, 2)) / 10.0, jnp.zeros(2)),
    ]


def _values(network: list[tuple[Any, Any]], observation: Any) -> Any:
    (hidden, hidden_bias), (out, out_bias) = network
    return jax.nn.relu(observation @ hidden + hidden_bias) @ out + out_bias


def _loss(online: Any, target: Any, batch: _Frames) -> Any:
    best = _values(target, batch.next_observation).max(-1)
    targets = batch.reward + 0.99 * (1 - batch.ended) * best
    values = _values(online, batch.observation)
    chosen = jnp.take_along_axis(values, batch.action[:, None], -1)[:, 0]
    return jnp.mean((chosen - targets) ** 2)


if __name__ == "__main__":
    serving.serve({"dqn": dqn}, ["jax", "gymnax", "optax"])
