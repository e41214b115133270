"""Measures Stable-Baselines3 and CleanRL's loop, on PyTorch with one thread."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from torch import nn

from benchmarks.workers import serving, stable_baselines

_BATCH = 64
_CAPACITY = 100_000


def stable_baselines3_dqn() -> serving.Task:
    """Makes `stable_baselines3.DQN`."""
    model = stable_baselines3.DQN(
        "MlpPolicy",
        "CartPole-v1",
        policy_kwargs={"net_arch": [100]},
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
    torch.set_num_threads(1)
    serving.serve(
        {
            "stable_baselines3": stable_baselines3_dqn,
            "cleanrl": cleanrl_dqn,
            "actor_critic": actor_critic,
        },
        ["stable-baselines3", "torch", "gymnasium", "numpy"],
        {"threads": torch.get_num_threads()},
    )
