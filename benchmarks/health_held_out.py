"""Runs that were held out while the rules of health were written.

Environments, algorithms, faults and their sizes were written down, with the cause that
a finding has to name, before any rule or threshold was changed.
"""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np

from benchmarks.health_cases import CART, PENDULUM, Case, ClockTerminates, made, scaled
from benchmarks.health_named import Ends, Frozen, OtherBounds, OwnActions, Reward

ACROBOT, MOUNTAIN = "Acrobot-v1", "MountainCar-v0"
_MOVES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])


class Grid(gymnasium.Env):
    """A grid of 5 x 5 cells with the goal in a corner; starts at a random cell."""

    def __init__(
        self,
        *,
        is_random: bool = False,
        reward: float = 1.0,
        is_noise: bool = False,
        is_mirrored: bool = False,
    ) -> None:
        """Creates the environment."""
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(4)
        self._is_random, self._reward = is_random, reward
        self._is_noise, self._is_mirrored = is_noise, is_mirrored

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode."""
        del options
        super().reset(seed=seed)
        self._at = self.np_random.integers(0, 5, 2)
        while self._is_goal():
            self._at = self.np_random.integers(0, 5, 2)
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        """Takes a step."""
        if self._is_random:
            action = self.np_random.integers(0, 4)
        self._at = np.clip(self._at + _MOVES[int(action)], 0, 4)
        is_goal = self._is_goal()
        reward = self._reward * (1.0 if is_goal else -0.01)
        return self._observation(), reward, is_goal, False, {}

    def _is_goal(self) -> bool:
        return bool((self._at == 4).all())

    def _observation(self) -> np.ndarray:
        if self._is_noise:
            return self.np_random.normal(size=2).astype(np.float32)
        sign = -1 if self._is_mirrored else 1
        return (sign * (self._at / 2 - 1)).astype(np.float32)


class Point(gymnasium.Env):
    """A mass on a line that a force moves to a target."""

    def __init__(self, *, low: float = -1.0) -> None:
        """Creates the environment."""
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (3,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._low = low

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode."""
        del options
        super().reset(seed=seed)
        self._target = self.np_random.uniform(-1, 1)
        self._position, self._velocity = self.np_random.uniform(-1, 1), 0.0
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        """Takes a step."""
        force = float(np.clip(action[0], self._low, 1.0))
        self._velocity = 0.9 * self._velocity + 0.1 * force
        self._position = float(np.clip(self._position + self._velocity, -3, 3))
        distance = self._position - self._target
        reward = -(distance**2) - 0.01 * force**2
        return self._observation(), reward, False, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self._position, self._velocity, self._target], np.float32)


class Bandit(gymnasium.Env):
    """Four arms; the largest number of the context, new at each step, is the right."""

    def __init__(self) -> None:
        """Creates the environment."""
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode."""
        del options
        super().reset(seed=seed)
        return self._draw(), {}

    def step(self, action: Any) -> Any:
        """Takes a step."""
        reward = float(int(action) == int(self._context.argmax()))
        return self._draw(), reward, False, False, {}

    def _draw(self) -> np.ndarray:
        self._context = self.np_random.normal(size=4).astype(np.float32)
        return self._context


def _limited(kind: Any, limit: int, **kwargs: Any) -> Any:
    def make() -> gymnasium.Env:
        return gymnasium.wrappers.TimeLimit(kind(**kwargs), limit)

    return make


def _grid(**kwargs: Any) -> Any:
    return _limited(Grid, 50, **kwargs)


def _point(*wrappers: Any, **kwargs: Any) -> Any:
    def make() -> gymnasium.Env:
        environment = _limited(Point, 100, **kwargs)()
        for wrap in wrappers:
            environment = wrap(environment)
        return environment

    return make


_one_feature = scaled(np.array([1.0, 3e3, 1.0, 1.0], np.float32))
_case = functools.partial(Case, rows=40, seed=7)

BROKEN = {
    "held_frozen": _case(
        "observations",
        "C51 on Acrobot that sees an episode's first observation",
        "C51",
        made(ACROBOT, Frozen),
        12_000,
        {"initial_collect_steps": 1_000},
    ),
    "held_constant": _case(
        "rewards",
        "PPO on a point mass, reward -1 at each step",
        "PPO",
        _point(lambda e: Reward(e, 0.0, -1.0)),
        30_000,
    ),
    "held_critic_rate": _case(
        "learning rate",
        "SAC on a point mass, critic's rate 0.5",
        "SAC",
        _point(),
        4_000,
        {"critic_learning_rate": 0.5},
    ),
    "held_ignored": _case(
        "actions",
        "DDQN on a grid that moves at random",
        "DDQN",
        _grid(is_random=True),
        8_000,
    ),
    "held_clipped": _case(
        "actions",
        "TD3 on a point mass that clips -1 to 1 to 0 to 1",
        "TD3",
        _point(low=0.0),
        4_000,
    ),
    "held_bounds": _case(
        "actions",
        "DDPG on MountainCarContinuous with bounds of 0 to 1",
        "DDPG",
        made("MountainCarContinuous-v0", lambda e: OtherBounds(e, 0.0, 1.0)),
        6_000,
    ),
    "held_ends": _case(
        "clock",
        "A2C on an Acrobot that terminates at step 6",
        "A2C",
        made(ACROBOT, lambda e: Ends(e, 6)),
        30_000,
    ),
    "held_clock": _case(
        "clock",
        "DQN on a MountainCar whose limit terminates",
        "DQN",
        made(MOUNTAIN, ClockTerminates),
        12_000,
    ),
    "held_gamma": _case(
        "discount",
        "TQC on a point mass, gamma 1",
        "TQC",
        _point(),
        4_000,
        {"gamma": 1.0},
    ),
    "held_short_sighted": _case(
        "discount",
        "DDQN on Acrobot, gamma 0.5",
        "DDQN",
        ACROBOT,
        15_000,
        {"gamma": 0.5},
    ),
    "held_flipped": _case(
        "evaluation",
        "QR-DQN on CartPole, trained with the reward times -1",
        "QRDQN",
        made(CART, lambda e: Reward(e, -1.0)),
        15_000,
        {"evaluation_environment": CART},
    ),
    "held_reinforce_rate": _case(
        "learning rate",
        "REINFORCE on CartPole, learning rate 3",
        "REINFORCE",
        CART,
        20_000,
        {"learning_rate": 3.0},
    ),
    "held_slow": _case(
        "learning rate",
        "PQN on a grid, learning rate 1e-9",
        "PQN",
        _grid(),
        30_000,
        {"learning_rate": 1e-9},
    ),
    "held_no_reward": _case(
        "rewards", "IQN on a grid without reward", "IQN", _grid(reward=0.0), 8_000
    ),
    "held_feature": _case(
        "observations",
        "Discrete SAC on CartPole, one feature times 3,000",
        "DiscreteSAC",
        made(CART, _one_feature),
        6_000,
    ),
    "held_buffer": _case(
        "replay",
        "SAC on MountainCarContinuous, buffer of 150",
        "SAC",
        "MountainCarContinuous-v0",
        4_000,
        {"replay_capacity": 150},
    ),
    "held_greedy": _case(
        "exploration",
        "QR-DQN on a grid, epsilon 0",
        "QRDQN",
        _grid(),
        10_000,
        {"initial_epsilon": 0.0, "final_epsilon": 0.0, "initial_collect_steps": 64},
    ),
    "held_silent": _case(
        "exploration",
        "TD3 on a point mass without noise",
        "TD3",
        _point(),
        4_000,
        {"exploration_noise": 0.0, "initial_collect_steps": 64},
    ),
    "held_gradients": _case(
        "gradients",
        "PPO on a grid, gradients clipped to 1e-7",
        "PPO",
        _grid(),
        30_000,
        {"max_gradient_norm": 1e-7},
    ),
    "held_atoms": _case(
        "rewards",
        "C51 on MountainCar, atoms in [-5, 5]",
        "C51",
        MOUNTAIN,
        10_000,
        {"vmin": -5.0, "vmax": 5.0, "initial_collect_steps": 1_000},
    ),
    "held_targets": _case(
        "targets",
        "IQN on CartPole, tau 1e-8",
        "IQN",
        CART,
        8_000,
        {"target_update_tau": 1e-8},
    ),
    "held_mirrored": _case(
        "evaluation",
        "PPO on a grid, evaluated in its mirror image",
        "PPO",
        _grid(),
        30_000,
        {"evaluation_environment": _grid(is_mirrored=True)},
    ),
    "held_entropy": _case(
        "entropy",
        "A2C on a point mass, entropy_regularization 5",
        "A2C",
        _point(),
        30_000,
        {"entropy_regularization": 5.0},
    ),
    "held_noise": _case(
        "observations",
        "DQN on a grid whose observations are noise",
        "DQN",
        _grid(is_noise=True),
        8_000,
    ),
}

HEALTHY = {
    "held_grid_dqn": _case("", "DQN on a grid", "DQN", _grid(), 10_000),
    "held_grid_ppo": _case("", "PPO on a grid", "PPO", _grid(), 40_000),
    "held_bandit_a2c": _case(
        "", "A2C on a contextual bandit", "A2C", _limited(Bandit, 10), 40_000
    ),
    "held_bandit_qrdqn": _case(
        "", "QR-DQN on a contextual bandit", "QRDQN", _limited(Bandit, 10), 15_000
    ),
    "held_point_td3": _case("", "TD3 on a point mass", "TD3", _point(), 5_000),
    "held_point_sac": _case("", "SAC on a point mass", "SAC", _point(), 5_000),
    "held_acrobot_c51": _case(
        "", "C51 on Acrobot with its preset, 20,000 steps", "C51", ACROBOT, 20_000
    ),
    "held_acrobot_ppo": _case(
        "", "PPO on Acrobot with its preset, 60,000 steps", "PPO", ACROBOT, 60_000
    ),
    "held_cart_iqn": _case("", "IQN on CartPole, seed 7", "IQN", CART, 20_000),
    "held_grid_reinforce": _case(
        "", "REINFORCE on a grid", "REINFORCE", _grid(), 20_000
    ),
    "held_cart_discrete_sac": _case(
        "", "Discrete SAC on CartPole", "DiscreteSAC", CART, 10_000
    ),
    "held_pendulum_tqc": _case("", "TQC on Pendulum", "TQC", PENDULUM, 6_000),
}

# Drawn and trained after three rules had been changed because of the runs above.
_second = functools.partial(Case, rows=40, seed=11)

SECOND_BROKEN = {
    "second_ignored": _second(
        "actions",
        "QR-DQN on an Acrobot that acts at random",
        "QRDQN",
        made(ACROBOT, OwnActions),
        10_000,
    ),
    "second_atoms": _second(
        "rewards",
        "C51 on CartPole, atoms in [-300, -200]",
        "C51",
        CART,
        10_000,
        {"vmin": -300.0, "vmax": -200.0, "initial_collect_steps": 1_000},
    ),
    "second_rate": _second(
        "learning rate",
        "A2C on a grid, learning rate 2",
        "A2C",
        _grid(),
        30_000,
        {"learning_rate": 2.0},
    ),
    "second_constant": _second(
        "rewards",
        "PPO on a bandit, reward -1 for each arm",
        "PPO",
        lambda: Reward(_limited(Bandit, 10)(), 0.0, -1.0),
        30_000,
    ),
}

SECOND_HEALTHY = {
    "second_grid_a2c": _second("", "A2C on a grid", "A2C", _grid(), 40_000),
    "second_bandit_ppo": _second(
        "", "PPO on a contextual bandit", "PPO", _limited(Bandit, 10), 30_000
    ),
    "second_bandit_ddqn": _second(
        "", "DDQN on a contextual bandit", "DDQN", _limited(Bandit, 10), 8_000
    ),
    "second_point_ddpg": _second("", "DDPG on a point mass", "DDPG", _point(), 5_000),
}
