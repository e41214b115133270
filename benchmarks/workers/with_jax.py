"""Measures DQN and PPO on gymnax's CartPole, each in one `lax.scan`, as PureJaxRL."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import optax

from benchmarks.workers import ppo_settings, serving

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


class _Step(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    ended: Any
    value: Any
    log_prob: Any


class _Ppo:
    """The loop; `scan` does `length` iterations in one compiled call."""

    def __init__(self, envs: int, steps: int, length: int) -> None:
        self._env, self._params = gymnax.make("CartPole-v1")
        self._envs, self._steps = envs, steps
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(ppo_settings.GRADIENT_NORM),
            optax.adam(ppo_settings.LEARNING_RATE, eps=ppo_settings.ADAM_EPSILON),
        )
        self.scan = jax.jit(
            lambda carry: jax.lax.scan(self._iteration, carry, None, length)[0]
        )

    def start(self) -> Any:
        key, actor_key, critic_key, env_key = jax.random.split(jax.random.PRNGKey(0), 4)
        networks = _make_tanh_network(actor_key, 2), _make_tanh_network(critic_key, 1)
        reset = jax.vmap(self._env.reset, (0, None))
        observation, state = reset(jax.random.split(env_key, self._envs), self._params)
        return networks, self._optimizer.init(networks), state, observation, key

    def _iteration(self, carry: Any, _: None) -> tuple[Any, None]:
        networks, optimizer, state, observation, key = carry
        (state, observation, key), rollout = jax.lax.scan(
            lambda carry, _: self._step(networks, carry),
            (state, observation, key),
            None,
            self._steps,
        )
        advantages = _advantages(rollout, _apply_both(networks, observation)[1])
        data = rollout, advantages, advantages + rollout.value
        (networks, optimizer, key), _ = jax.lax.scan(
            lambda carry, _: self._epoch(data, carry),
            (networks, optimizer, key),
            None,
            ppo_settings.EPOCHS,
        )
        return (networks, optimizer, state, observation, key), None

    def _step(self, networks: Any, carry: Any) -> tuple[Any, _Step]:
        state, observation, key = carry
        key, act_key, step_key = jax.random.split(key, 3)
        logits, value = _apply_both(networks, observation)
        action = jax.random.categorical(act_key, logits)
        keys = jax.random.split(step_key, self._envs)
        step = jax.vmap(self._env.step, (0, 0, 0, None))
        following, state, reward, ended, *_ = step(keys, state, action, self._params)
        ended = ended.astype(jnp.float32)
        log_prob = _log_prob(logits, action)
        frame = _Step(observation, action, reward, ended, value, log_prob)
        return (state, following, key), frame

    def _epoch(self, data: Any, carry: Any) -> tuple[Any, None]:
        networks, optimizer, key = carry
        key, order_key = jax.random.split(key)
        rows = self._envs * self._steps
        order = jax.random.permutation(order_key, rows)

        def shuffled(x: Any) -> Any:
            x = x.reshape((rows, *x.shape[2:]))[order]
            return x.reshape((ppo_settings.MINIBATCHES, -1, *x.shape[1:]))

        def update(carry: Any, minibatch: Any) -> tuple[Any, None]:
            networks, optimizer = carry
            gradients = jax.grad(_ppo_loss)(networks, *minibatch)
            updates, optimizer = self._optimizer.update(gradients, optimizer)
            return (optax.apply_updates(networks, updates), optimizer), None

        minibatches = jax.tree_util.tree_map(shuffled, data)
        (networks, optimizer), _ = jax.lax.scan(
            update, (networks, optimizer), minibatches
        )
        return (networks, optimizer, key), None


def ppo(envs: int, steps: int) -> serving.Task:
    """Makes the loop; a call does about 50,000 environment steps."""
    length = max(1, 50_000 // (envs * steps))
    loop = _Ppo(envs, steps, length)
    carry = loop.start()

    def run(count: int) -> dict[str, int]:
        nonlocal carry
        calls = -(-count // length)
        for _ in range(calls):
            carry = loop.scan(carry)
        jax.block_until_ready(carry)
        iterations = calls * length
        return {
            "iterations": iterations,
            "environment steps": iterations * envs * steps,
        }

    return serving.Task(run)


def _advantages(rollout: _Step, last_value: Any) -> Any:
    """Returns generalized advantage estimates, `[T, B]`."""
    gamma, mix = ppo_settings.GAMMA, ppo_settings.GAMMA * ppo_settings.GAE_LAMBDA

    def back(carry: Any, step: _Step) -> tuple[Any, Any]:
        advantage, following = carry
        going_on = 1 - step.ended
        delta = step.reward + gamma * following * going_on - step.value
        advantage = delta + mix * going_on * advantage
        return (advantage, step.value), advantage

    start = jnp.zeros_like(last_value), last_value
    return jax.lax.scan(back, start, rollout, reverse=True, unroll=16)[1]


def _ppo_loss(networks: Any, rollout: _Step, advantages: Any, returns: Any) -> Any:
    clip = ppo_settings.CLIP_RANGE
    logits, values = _apply_both(networks, rollout.observation)
    near = rollout.value + jnp.clip(values - rollout.value, -clip, clip)
    errors = jnp.maximum((values - returns) ** 2, (near - returns) ** 2)
    ratio = jnp.exp(_log_prob(logits, rollout.action) - rollout.log_prob)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    gain = jnp.minimum(
        ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages
    )
    log_probs = jax.nn.log_softmax(logits)
    entropy = -(jnp.exp(log_probs) * log_probs).sum(-1)
    return (
        ppo_settings.VALUE_WEIGHT * errors.mean()
        - gain.mean()
        - ppo_settings.ENTROPY_WEIGHT * entropy.mean()
    )


def _make_tanh_network(key: Any, outputs: int) -> list[tuple[Any, Any]]:
    sizes = (4, ppo_settings.UNITS, ppo_settings.UNITS, outputs)
    return [
        (jax.random.normal(k, (rows, columns)) / rows**0.5, jnp.zeros(columns))
        for k, rows, columns in zip(
            jax.random.split(key, 3), sizes[:-1], sizes[1:], strict=True
        )
    ]


def _apply_both(networks: Any, observation: Any) -> tuple[Any, Any]:
    """Returns the logits and the values."""
    logits, values = (_apply_tanh(network, observation) for network in networks)
    return logits, values[..., 0]


def _apply_tanh(network: list[tuple[Any, Any]], x: Any) -> Any:
    *hidden, (out, out_bias) = network
    for kernel, bias in hidden:
        x = jnp.tanh(x @ kernel + bias)
    return x @ out + out_bias


def _log_prob(logits: Any, action: Any) -> Any:
    log_probs = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(log_probs, action[:, None], -1)[:, 0]


if __name__ == "__main__":
    serving.serve({"dqn": dqn, "ppo": ppo}, ["jax", "gymnax", "optax"])
