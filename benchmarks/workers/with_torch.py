"""Measures Stable-Baselines3 and CleanRL's loop, on PyTorch."""

from __future__ import annotations

import os
import random
from typing import Any

import gymnasium
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common import env_util
from torch import nn

from benchmarks.workers import (
    ppo_settings,
    pqn_settings,
    serving,
    stable_baselines,
)

_BATCH = 64
_CAPACITY = 100_000


def stable_baselines3_dqn() -> serving.Task:
    """Makes `stable_baselines3.DQN`."""
    return _dqn(stable_baselines3.DQN, {})


def stable_baselines3_qr_dqn() -> serving.Task:
    """Makes `sb3_contrib.QRDQN` with 50 quantiles."""
    return _dqn(sb3_contrib.QRDQN, {"n_quantiles": 50})


def _dqn(algorithm: Any, policy_kwargs: dict[str, Any]) -> serving.Task:
    model = algorithm(
        "MlpPolicy",
        "CartPole-v1",
        policy_kwargs={"net_arch": [100], **policy_kwargs},
        batch_size=_BATCH,
        learning_rate=1e-3,
        buffer_size=_CAPACITY,
        learning_starts=200,
        target_update_interval=5,
        tau=0.05,
        train_freq=1,
        gradient_steps=1,
        exploration_fraction=0.01,
        exploration_final_eps=0.1,
        device="cpu",
    )
    model.learn(1000)
    return stable_baselines.learning(model)


def actor_critic(**settings: Any) -> serving.Task:
    """Makes `stable_baselines3.SAC` or `TD3` on Pendulum."""
    return stable_baselines.actor_critic(stable_baselines3, **settings)


def stable_baselines3_ppo(envs: int, steps: int) -> serving.Task:
    """Makes `stable_baselines3.PPO`."""
    environment = env_util.make_vec_env(ppo_settings.ENVIRONMENT, envs)
    model = stable_baselines3.PPO(
        "MlpPolicy",
        environment,
        policy_kwargs={"net_arch": [ppo_settings.UNITS, ppo_settings.UNITS]},
        n_steps=steps,
        batch_size=envs * steps // ppo_settings.MINIBATCHES,
        n_epochs=ppo_settings.EPOCHS,
        learning_rate=ppo_settings.LEARNING_RATE,
        gamma=ppo_settings.GAMMA,
        gae_lambda=ppo_settings.GAE_LAMBDA,
        clip_range=ppo_settings.CLIP_RANGE,
        clip_range_vf=ppo_settings.CLIP_RANGE,
        ent_coef=ppo_settings.ENTROPY_WEIGHT,
        vf_coef=ppo_settings.VALUE_WEIGHT,
        max_grad_norm=ppo_settings.GRADIENT_NORM,
        device="cpu",
    )

    def run(count: int) -> dict[str, int]:
        taken = count * envs * steps
        model.learn(taken, reset_num_timesteps=False)
        return {"iterations": count, "environment steps": taken}

    return serving.Task(run)


def predict(
    algorithm: str, environment: str, units: int, observations: int
) -> serving.Task:
    """Makes calls of `predict` of an algorithm with two layers."""
    model = getattr(stable_baselines3, algorithm)(
        "MlpPolicy",
        environment,
        policy_kwargs={"net_arch": [units, units]},
        device="cpu",
    )
    shape = model.observation_space.shape
    batch = np.zeros((observations, *shape), np.float32)
    given = batch if observations > 1 else batch[0]
    return serving.calling(lambda: model.predict(given, deterministic=True))


def cleanrl_ppo(envs: int, steps: int) -> serving.Task:
    """Makes the loop of CleanRL's ppo.py."""
    loop = _CleanRlPpo(envs, steps)

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            loop.iterate()
        return {"iterations": count, "environment steps": count * envs * steps}

    return serving.Task(run)


class _CleanRlPpo:
    def __init__(self, envs: int, steps: int) -> None:
        make = gymnasium.wrappers.RecordEpisodeStatistics
        self._envs = gymnasium.vector.SyncVectorEnv(
            [lambda: make(gymnasium.make(ppo_settings.ENVIRONMENT))] * envs
        )
        self._actor, self._critic = _tanh_network(2), _tanh_network(1)
        self._parameters = [*self._actor.parameters(), *self._critic.parameters()]
        self._optimizer = torch.optim.Adam(
            self._parameters, ppo_settings.LEARNING_RATE, eps=ppo_settings.ADAM_EPSILON
        )
        self._observations = torch.zeros((steps, envs, 4))
        self._actions = torch.zeros((steps, envs))
        self._columns = torch.zeros((4, steps, envs))
        self._observation = torch.Tensor(self._envs.reset(seed=0)[0])
        self._ended = torch.zeros(envs)

    def iterate(self) -> None:
        """Collects a rollout and trains on it."""
        log_probs, rewards, ends, values = self._columns
        for step in range(len(rewards)):
            self._observations[step] = self._observation
            ends[step] = self._ended
            with torch.no_grad():
                distribution = self._distribution(self._observation)
                action = distribution.sample()
                log_probs[step] = distribution.log_prob(action)
                values[step] = self._critic(self._observation).flatten()
            self._actions[step] = action
            following, reward, terminated, truncated, _ = self._envs.step(
                action.cpu().numpy()
            )
            rewards[step] = torch.tensor(reward).view(-1)
            self._observation = torch.Tensor(following)
            self._ended = torch.Tensor(np.logical_or(terminated, truncated))
        self._train(self._advantages())

    def _distribution(self, observations: Any) -> Any:
        return torch.distributions.Categorical(logits=self._actor(observations))

    def _advantages(self) -> Any:
        _, rewards, ends, values = self._columns
        advantages = torch.zeros_like(rewards)
        with torch.no_grad():
            following = self._critic(self._observation).flatten()
            ended, advantage = self._ended, torch.zeros_like(following)
            for step in reversed(range(len(rewards))):
                discount = ppo_settings.GAMMA * (1.0 - ended)
                delta = rewards[step] + discount * following - values[step]
                advantage = delta + discount * ppo_settings.GAE_LAMBDA * advantage
                advantages[step] = advantage
                ended, following = ends[step], values[step]
        return advantages

    def _train(self, advantages: Any) -> None:
        log_probs, _, _, values = self._columns
        columns = (
            self._observations.reshape(-1, 4),
            self._actions.reshape(-1),
            log_probs.reshape(-1),
            values.reshape(-1),
            advantages.reshape(-1),
        )
        rows = np.arange(len(columns[1]))
        for _ in range(ppo_settings.EPOCHS):
            np.random.shuffle(rows)
            for chosen in np.split(rows, ppo_settings.MINIBATCHES):
                loss = self._loss(*(column[chosen] for column in columns))
                self._optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self._parameters, ppo_settings.GRADIENT_NORM)
                self._optimizer.step()

    def _loss(
        self,
        observations: Any,
        actions: Any,
        log_probs: Any,
        old_values: Any,
        advantages: Any,
    ) -> Any:
        clip = ppo_settings.CLIP_RANGE
        returns = advantages + old_values
        distribution = self._distribution(observations)
        values = self._critic(observations).view(-1)
        ratio = (distribution.log_prob(actions) - log_probs).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        losses = torch.max(
            -advantages * ratio, -advantages * ratio.clamp(1 - clip, 1 + clip)
        )
        near = old_values + (values - old_values).clamp(-clip, clip)
        errors = torch.max((values - returns) ** 2, (near - returns) ** 2)
        return (
            losses.mean()
            - ppo_settings.ENTROPY_WEIGHT * distribution.entropy().mean()
            + 0.5 * ppo_settings.VALUE_WEIGHT * errors.mean()
        )


def _tanh_network(outputs: int) -> nn.Module:
    units = ppo_settings.UNITS
    return nn.Sequential(
        *(nn.Linear(4, units), nn.Tanh()),
        *(nn.Linear(units, units), nn.Tanh()),
        nn.Linear(units, outputs),
    )


def cleanrl_pqn(envs: int, steps: int) -> serving.Task:
    """Makes the loop of CleanRL's pqn.py."""
    loop = _CleanRlPqn(envs, steps)

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            loop.iterate()
        return {"iterations": count, "environment steps": count * envs * steps}

    return serving.Task(run)


class _CleanRlPqn:
    def __init__(self, envs: int, steps: int) -> None:
        make = gymnasium.wrappers.RecordEpisodeStatistics
        self._envs = gymnasium.vector.SyncVectorEnv(
            [lambda: make(gymnasium.make(pqn_settings.ENVIRONMENT))] * envs
        )
        self._network = _normalized_network()
        self._optimizer = torch.optim.Adam(
            self._network.parameters(), pqn_settings.LEARNING_RATE
        )
        self._observations = torch.zeros((steps, envs, 4))
        self._actions = torch.zeros((steps, envs), dtype=torch.int64)
        self._columns = torch.zeros((3, steps, envs))
        self._observation = torch.Tensor(self._envs.reset(seed=0)[0])
        self._ended = torch.zeros(envs)

    def iterate(self) -> None:
        """Collects a rollout and trains on it."""
        rewards, ends, values = self._columns
        num_envs = len(self._ended)
        for step in range(len(rewards)):
            self._observations[step] = self._observation
            ends[step] = self._ended
            with torch.no_grad():
                values[step], best = self._network(self._observation).max(dim=1)
            explores = torch.rand(num_envs) < pqn_settings.EPSILON
            drawn = torch.randint(0, 2, (num_envs,))
            self._actions[step] = torch.where(explores, drawn, best)
            following, reward, terminated, truncated, _ = self._envs.step(
                self._actions[step].cpu().numpy()
            )
            rewards[step] = torch.tensor(reward).view(-1)
            self._observation = torch.Tensor(following)
            self._ended = torch.Tensor(np.logical_or(terminated, truncated))
        self._train(self._returns())

    def _returns(self) -> Any:
        rewards, ends, values = self._columns
        returns = torch.zeros_like(rewards)
        with torch.no_grad():
            onward = self._network(self._observation).max(dim=1)[0]
            ended = self._ended
            for step in reversed(range(len(rewards))):
                discount = pqn_settings.GAMMA * (1.0 - ended)
                returns[step] = rewards[step] + discount * onward
                onward = (
                    pqn_settings.LAMBDA * returns[step]
                    + (1.0 - pqn_settings.LAMBDA) * values[step]
                )
                ended = ends[step]
        return returns

    def _train(self, returns: Any) -> None:
        observations = self._observations.reshape(-1, 4)
        actions, returns = self._actions.reshape(-1, 1), returns.reshape(-1)
        rows = np.arange(len(returns))
        for _ in range(pqn_settings.EPOCHS):
            np.random.shuffle(rows)
            for chosen in np.split(rows, pqn_settings.MINIBATCHES):
                values = self._network(observations[chosen])
                taken = values.gather(1, actions[chosen]).squeeze(1)
                loss = nn.functional.mse_loss(returns[chosen], taken)
                self._optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(
                    self._network.parameters(), pqn_settings.GRADIENT_NORM
                )
                self._optimizer.step()


def _normalized_network() -> nn.Module:
    first, second = pqn_settings.UNITS
    return nn.Sequential(
        *(nn.Linear(4, first), nn.LayerNorm(first), nn.ReLU()),
        *(nn.Linear(first, second), nn.LayerNorm(second), nn.ReLU()),
        nn.Linear(second, 2),
    )


def cleanrl_dqn() -> serving.Task:
    """Makes the loop of CleanRL's dqn.py: one vector environment, and NumPy storage.

    As there, the target network is copied every 500 steps, which costs less than the
    other contenders' updates.
    """
    loop = _CleanRL()
    loop.run(1000)
    return serving.Task(loop.run)


class _CleanRL:
    def __init__(self) -> None:
        make = gymnasium.wrappers.RecordEpisodeStatistics
        self._envs = gymnasium.vector.SyncVectorEnv(
            [lambda: make(gymnasium.make("CartPole-v1"))]
        )
        self._online, self._target = _network(), _network()
        self._target.load_state_dict(self._online.state_dict())
        self._optimizer = torch.optim.Adam(self._online.parameters(), lr=1e-3)
        self._observations = np.zeros((_CAPACITY, 4), np.float32)
        self._next_observations = np.zeros((_CAPACITY, 4), np.float32)
        self._actions = np.zeros((_CAPACITY, 1), np.int64)
        self._rewards = np.zeros(_CAPACITY, np.float32)
        self._ends = np.zeros(_CAPACITY, np.float32)
        self._step = 0
        self._observation, _ = self._envs.reset(seed=0)

    def run(self, count: int) -> dict[str, int]:
        """Collects steps, and trains after each once there is enough experience."""
        for _ in range(count):
            self._collect()
            if self._step > 200:
                self._train()
            if self._step % 500 == 0:
                self._target.load_state_dict(self._online.state_dict())
        return {"iterations": count, "environment steps": count}

    def _collect(self) -> None:
        if random.random() < 0.1:
            actions = np.array([self._envs.single_action_space.sample()])
        else:
            values = self._online(torch.Tensor(self._observation))
            actions = torch.argmax(values, dim=1).cpu().numpy()
        following, rewards, terminations, _, _ = self._envs.step(actions)
        row = self._step % _CAPACITY
        self._observations[row] = self._observation[0]
        self._next_observations[row] = following[0]
        self._actions[row] = actions
        self._rewards[row] = rewards[0]
        self._ends[row] = terminations[0]
        self._observation = following
        self._step += 1

    def _train(self) -> None:
        rows = np.random.randint(0, min(self._step, _CAPACITY), _BATCH)
        with torch.no_grad():
            values = self._target(torch.from_numpy(self._next_observations[rows]))
            going_on = 1 - torch.from_numpy(self._ends[rows])
            rewards = torch.from_numpy(self._rewards[rows])
            targets = rewards + 0.99 * values.max(dim=1)[0] * going_on
        predicted = self._online(torch.from_numpy(self._observations[rows]))
        chosen = predicted.gather(1, torch.from_numpy(self._actions[rows])).squeeze(1)
        loss = nn.functional.mse_loss(targets, chosen)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()


def _network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 100), nn.ReLU(), nn.Linear(100, 2))


if __name__ == "__main__":
    # Without the variable, it may use all processors.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    serving.serve(
        {
            "stable_baselines3": stable_baselines3_dqn,
            "stable_baselines3_qr_dqn": stable_baselines3_qr_dqn,
            "cleanrl": cleanrl_dqn,
            "actor_critic": actor_critic,
            "stable_baselines3_ppo": stable_baselines3_ppo,
            "cleanrl_ppo": cleanrl_ppo,
            "cleanrl_pqn": cleanrl_pqn,
            "predict": predict,
        },
        ["stable-baselines3", "torch", "gymnasium", "numpy"],
        {"threads": torch.get_num_threads()},
    )
