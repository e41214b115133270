"""Measures DQN, PPO and PQN on gymnax's environments, each in one `lax.scan`.

They are as PureJaxRL and, for PQN, purejaxql write them: on CartPole, and on a game of
MinAtar.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import optax

from benchmarks.workers import (
    jax_networks,
    minatar_settings,
    ppo_settings,
    pqn_settings,
    serving,
)

_BATCH = 64


class _Problem:
    """An environment of gymnax, and networks for it.

    Attributes:
      env: The environment.
      params: Its parameters.
      shape: The shape of an observation.
      actions: The number of actions.
    """

    def __init__(
        self,
        name: str = "CartPole-v1",
        units: Sequence[int] = (100,),
        filters: int = 0,
        activation: Callable[[Any], Any] = jax.nn.relu,
        by_products: bool = True,
    ) -> None:
        self.env, self.params = gymnax.make(name)
        self.shape = self.env.observation_space(self.params).shape
        self.actions = int(self.env.num_actions)
        self._units, self._filters, self._activation = units, filters, activation
        self._by_products = by_products

    def network(self, key: Any, outputs: int, *, normalized: bool = False) -> Any:
        """Makes a network for the observations."""
        return jax_networks.make(
            key,
            self.shape,
            self._units,
            outputs,
            filters=self._filters,
            normalized=normalized,
        )

    def apply(self, network: Any, observation: Any) -> Any:
        """Returns a network's outputs `[B, outputs]`."""
        return jax_networks.apply(
            network, observation, self._activation, by_products=self._by_products
        )

    def reset(self, key: Any, envs: int) -> tuple[Any, Any]:
        """Returns observations and states of environments."""
        reset = jax.vmap(self.env.reset, (0, None))
        observation, state = reset(jax.random.split(key, envs), self.params)
        return observation, state

    def step(self, key: Any, state: Any, action: Any) -> tuple[Any, Any, Any, Any]:
        """Returns observations, states, rewards and the ends of episodes, `[B]`."""
        keys = jax.random.split(key, len(action))
        step = jax.vmap(self.env.step, (0, 0, 0, None))
        # Terminated and truncated; one end of both kinds before gymnax 1.0.
        observation, state, reward, *ends, _ = step(keys, state, action, self.params)
        ended = functools.reduce(jnp.logical_or, ends)
        return observation, state, reward, ended.astype(jnp.float32)


def _minatar(*, by_products: bool = True) -> _Problem:
    settings = minatar_settings
    return _Problem(
        settings.ENVIRONMENT.partition("/")[2],
        settings.UNITS,
        settings.FILTERS,
        by_products=by_products,
    )


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

    def __init__(
        self, problem: _Problem, envs: int, capacity: int, length: int
    ) -> None:
        self._problem = problem
        self._envs, self._rows = envs, capacity // envs
        self._adam = optax.adam(1e-3)
        self.scan = jax.jit(
            lambda carry: jax.lax.scan(self._iteration, carry, None, length),
            donate_argnums=0,
        )

    def start(self) -> _Carry:
        key, net_key, env_key = jax.random.split(jax.random.PRNGKey(0), 3)
        online = self._problem.network(net_key, self._problem.actions)
        observation, state = self._problem.reset(env_key, self._envs)
        shape = (self._rows, self._envs)
        buffer = _Frames(
            jnp.zeros((*shape, *self._problem.shape)),
            jnp.zeros(shape, jnp.int32),
            jnp.zeros(shape),
            jnp.zeros((*shape, *self._problem.shape)),
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
        observation, state, reward, ended = self._problem.step(
            step_key, carry.state, actions
        )
        frames = _Frames(carry.observation, actions, reward, observation, ended)
        row = carry.step % self._rows
        buffer = jax.tree_util.tree_map(
            lambda rows, new: rows.at[row].set(new), carry.buffer, frames
        )
        step = carry.step + 1
        batch = self._sample(buffer, step, sample_key)
        gradients = jax.grad(self._loss)(carry.online, carry.target, batch)
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
        values = self._problem.apply(carry.online, carry.observation)
        greedy = jnp.argmax(values, -1)
        explores = jax.random.uniform(explore_key, (self._envs,)) < 0.1
        at_random = jax.random.randint(
            random_key, (self._envs,), 0, self._problem.actions
        )
        return jnp.where(explores, at_random, greedy)

    def _sample(self, buffer: _Frames, filled: Any, key: Any) -> _Frames:
        row_key, env_key = jax.random.split(key)
        limit = jnp.minimum(filled, self._rows)
        rows = jax.random.randint(row_key, (_BATCH,), 0, limit)
        envs = jax.random.randint(env_key, (_BATCH,), 0, self._envs)
        return jax.tree_util.tree_map(lambda frames: frames[rows, envs], buffer)

    def _loss(self, online: Any, target: Any, batch: _Frames) -> Any:
        best = self._problem.apply(target, batch.next_observation).max(-1)
        targets = batch.reward + 0.99 * (1 - batch.ended) * best
        values = self._problem.apply(online, batch.observation)
        chosen = jnp.take_along_axis(values, batch.action[:, None], -1)[:, 0]
        return jnp.mean((chosen - targets) ** 2)


def dqn(envs: int, capacity: int = 100_000, minatar: bool = False) -> serving.Task:
    """Makes the loop; a call takes about a sixth of a second."""
    length = 20 if minatar else max(200, 4000 * 16 // (16 + envs))
    # With products XLA copies the whole buffer of images in each iteration.
    problem = _minatar(by_products=False) if minatar else _Problem()
    loop = _Dqn(problem, envs, capacity, length)
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


class _Step(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    ended: Any
    value: Any
    log_prob: Any


class _Ppo:
    """The loop; `scan` does `length` iterations in one compiled call."""

    def __init__(self, problem: _Problem, envs: int, steps: int, length: int) -> None:
        self._problem = problem
        self._envs, self._steps = envs, steps
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(ppo_settings.GRADIENT_NORM),
            optax.adam(ppo_settings.LEARNING_RATE, eps=ppo_settings.ADAM_EPSILON),
        )
        self.scan = jax.jit(
            lambda carry: jax.lax.scan(self._iteration, carry, None, length)[0]
        )
        self._epoch = functools.partial(_epoch, self._update, ppo_settings.MINIBATCHES)

    def start(self) -> Any:
        key, actor_key, critic_key, env_key = jax.random.split(jax.random.PRNGKey(0), 4)
        networks = (
            self._problem.network(actor_key, self._problem.actions),
            self._problem.network(critic_key, 1),
        )
        observation, state = self._problem.reset(env_key, self._envs)
        return networks, self._optimizer.init(networks), state, observation, key

    def _iteration(self, carry: Any, _: None) -> tuple[Any, None]:
        networks, optimizer, state, observation, key = carry
        (state, observation, key), rollout = jax.lax.scan(
            lambda carry, _: self._step(networks, carry),
            (state, observation, key),
            None,
            self._steps,
        )
        advantages = _advantages(rollout, self._apply_both(networks, observation)[1])
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
        logits, value = self._apply_both(networks, observation)
        action = jax.random.categorical(act_key, logits)
        following, state, reward, ended = self._problem.step(step_key, state, action)
        log_prob = _log_prob(logits, action)
        frame = _Step(observation, action, reward, ended, value, log_prob)
        return (state, following, key), frame

    def _update(self, networks: Any, optimizer: Any, minibatch: Any) -> Any:
        gradients = jax.grad(self._loss)(networks, *minibatch)
        updates, optimizer = self._optimizer.update(gradients, optimizer)
        return optax.apply_updates(networks, updates), optimizer

    def _loss(
        self, networks: Any, rollout: _Step, advantages: Any, returns: Any
    ) -> Any:
        clip = ppo_settings.CLIP_RANGE
        logits, values = self._apply_both(networks, rollout.observation)
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

    def _apply_both(self, networks: Any, observation: Any) -> tuple[Any, Any]:
        """Returns the logits and the values."""
        logits, values = (self._problem.apply(x, observation) for x in networks)
        return logits, values[..., 0]


def ppo(envs: int, steps: int, minatar: bool = False) -> serving.Task:
    """Makes the loop; a call is 50,000 environment steps, or one rollout of MinAtar."""
    units = (ppo_settings.UNITS, ppo_settings.UNITS)
    problem = _minatar() if minatar else _Problem(units=units, activation=jnp.tanh)
    return _on_policy_task(_Ppo, problem, envs, steps)


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


def _log_prob(logits: Any, action: Any) -> Any:
    log_probs = jax.nn.log_softmax(logits)
    return jnp.take_along_axis(log_probs, action[:, None], -1)[:, 0]


class _Valued(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    ended: Any
    value: Any


class _Pqn:
    """The loop; `scan` does `length` iterations in one compiled call."""

    def __init__(self, problem: _Problem, envs: int, steps: int, length: int) -> None:
        self._problem = problem
        self._envs, self._steps = envs, steps
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(pqn_settings.GRADIENT_NORM),
            optax.adam(pqn_settings.LEARNING_RATE),
        )
        self.scan = jax.jit(
            lambda carry: jax.lax.scan(self._iteration, carry, None, length)[0]
        )
        self._epoch = functools.partial(_epoch, self._update, pqn_settings.MINIBATCHES)

    def start(self) -> Any:
        key, net_key, env_key = jax.random.split(jax.random.PRNGKey(0), 3)
        network = self._problem.network(net_key, self._problem.actions, normalized=True)
        observation, state = self._problem.reset(env_key, self._envs)
        return network, self._optimizer.init(network), state, observation, key

    def _iteration(self, carry: Any, _: None) -> tuple[Any, None]:
        network, optimizer, state, observation, key = carry
        (state, observation, key), rollout = jax.lax.scan(
            lambda carry, _: self._step(network, carry),
            (state, observation, key),
            None,
            self._steps,
        )
        last_value = self._problem.apply(network, observation).max(-1)
        data = rollout.observation, rollout.action, _returns(rollout, last_value)
        (network, optimizer, key), _ = jax.lax.scan(
            lambda carry, _: self._epoch(data, carry),
            (network, optimizer, key),
            None,
            pqn_settings.EPOCHS,
        )
        return (network, optimizer, state, observation, key), None

    def _step(self, network: Any, carry: Any) -> tuple[Any, _Valued]:
        state, observation, key = carry
        key, explore_key, random_key, step_key = jax.random.split(key, 4)
        values = self._problem.apply(network, observation)
        explores = jax.random.uniform(explore_key, (self._envs,)) < pqn_settings.EPSILON
        at_random = jax.random.randint(
            random_key, (self._envs,), 0, self._problem.actions
        )
        action = jnp.where(explores, at_random, jnp.argmax(values, -1))
        following, state, reward, ended = self._problem.step(step_key, state, action)
        frame = _Valued(observation, action, reward, ended, values.max(-1))
        return (state, following, key), frame

    def _update(self, network: Any, optimizer: Any, minibatch: Any) -> Any:
        gradients = jax.grad(self._loss)(network, *minibatch)
        updates, optimizer = self._optimizer.update(gradients, optimizer)
        return optax.apply_updates(network, updates), optimizer

    def _loss(self, network: Any, observation: Any, action: Any, returns: Any) -> Any:
        values = self._problem.apply(network, observation)
        chosen = jnp.take_along_axis(values, action[:, None], -1)[:, 0]
        return jnp.mean((chosen - returns) ** 2)


def pqn(envs: int, steps: int, minatar: bool = False) -> serving.Task:
    """Makes the loop; a call is 50,000 environment steps, or one rollout of MinAtar."""
    problem = _minatar() if minatar else _Problem(units=pqn_settings.UNITS)
    return _on_policy_task(_Pqn, problem, envs, steps)


def _returns(rollout: _Valued, last_value: Any) -> Any:
    """Returns Peng's Q(lambda), `[T, B]`."""
    gamma, mix = pqn_settings.GAMMA, pqn_settings.LAMBDA

    def back(onward: Any, step: _Valued) -> tuple[Any, Any]:
        returned = step.reward + gamma * (1 - step.ended) * onward
        return mix * returned + (1 - mix) * step.value, returned

    return jax.lax.scan(back, last_value, rollout, reverse=True, unroll=16)[1]


def _epoch(
    update: Callable[[Any, Any, Any], Any], minibatches: int, data: Any, carry: Any
) -> tuple[Any, None]:
    """Updates once on each minibatch of a rollout's rows, in a new order.

    Args:
      update: Takes networks, the optimizer's state and a minibatch, returns the first
        two.
      minibatches: Their number.
      data: The rollout, a tree of arrays `[T, B, ...]`.
      carry: Networks, the optimizer's state and the key.
    """
    networks, optimizer, key = carry
    key, order_key = jax.random.split(key)
    steps, envs = jax.tree_util.tree_leaves(data)[0].shape[:2]
    order = jax.random.permutation(order_key, steps * envs)

    def shuffled(x: Any) -> Any:
        x = x.reshape((len(order), *x.shape[2:]))[order]
        return x.reshape((minibatches, -1, *x.shape[1:]))

    (networks, optimizer), _ = jax.lax.scan(
        lambda carry, minibatch: (update(carry[0], carry[1], minibatch), None),
        (networks, optimizer),
        jax.tree_util.tree_map(shuffled, data),
    )
    return (networks, optimizer, key), None


def _on_policy_task(
    make_loop: Any, problem: _Problem, envs: int, steps: int
) -> serving.Task:
    length = 1 if len(problem.shape) > 1 else max(1, 50_000 // (envs * steps))
    loop = make_loop(problem, envs, steps, length)
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


if __name__ == "__main__":
    serving.serve({"dqn": dqn, "ppo": ppo, "pqn": pqn}, ["jax", "gymnax", "optax"])
