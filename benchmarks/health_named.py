"""More runs with which the rules of health were written: faults of environments.

Most are told apart by facts about the environment alone; see
`tfrl.eval.environment_facts`.
"""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np

from benchmarks.health_cases import CART, PENDULUM, Case, made, scaled


class Corridor(gymnasium.Env):
    """Cells in a row: from the left end to the right end, where the reward is 1."""

    def __init__(self, length: int = 8) -> None:
        """Creates the environment."""
        self._length = length
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode."""
        del options
        super().reset(seed=seed)
        self._cell = 0
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        """Takes a step."""
        self._cell = max(self._cell + (1 if action == 1 else -1), 0)
        is_end = self._cell >= self._length
        return self._observation(), float(is_end), is_end, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self._cell / self._length], np.float32)


class Reward(gymnasium.RewardWrapper):
    """Rewards times a factor, plus an offset."""

    def __init__(self, env: Any, factor: float, offset: float = 0.0) -> None:
        """Creates the environment."""
        super().__init__(env)
        self._factor, self._offset = factor, offset

    def reward(self, reward: Any) -> float:
        """Returns the changed reward."""
        return self._factor * float(reward) + self._offset


class Frozen(gymnasium.Wrapper):
    """Shows the first observation of an episode at each step."""

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode."""
        self._first, info = self.env.reset(**kwargs)
        return self._first, info

    def step(self, action: Any) -> Any:
        """Takes a step."""
        _, *rest = self.env.step(action)
        return self._first, *rest


class OwnActions(gymnasium.ActionWrapper):
    """Takes a random action in place of the agent's."""

    def action(self, action: Any) -> Any:
        """Returns the changed action."""
        del action
        return self.action_space.sample()


class Clipped(gymnasium.ActionWrapper):
    """Clips actions to a part of their range."""

    def action(self, action: Any) -> Any:
        """Returns the changed action."""
        return np.clip(action, 0.0, 1.0)


class OtherBounds(gymnasium.Wrapper):
    """Declares other bounds of the actions, which are passed on unchanged."""

    def __init__(self, env: Any, low: float, high: float) -> None:
        """Creates the environment."""
        super().__init__(env)
        shape = env.action_space.shape
        self.action_space = gymnasium.spaces.Box(low, high, shape, np.float32)


class Ends(gymnasium.Wrapper):
    """Terminates every episode after some steps."""

    def __init__(self, env: Any, steps: int) -> None:
        """Creates the environment."""
        super().__init__(env)
        self._steps = steps

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode."""
        self._taken = 0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        """Takes a step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._taken += 1
        is_end = terminated or self._taken >= self._steps
        return observation, reward, is_end, truncated, info


class Hint(gymnasium.Wrapper):
    """A last element of the observation says which action is right; or always 0."""

    def __init__(self, env: Any, is_told: bool) -> None:
        """Creates the environment."""
        super().__init__(env)
        self._is_told = is_told
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, (space.shape[0] + 1,), np.float32
        )

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode."""
        observation, info = self.env.reset(**kwargs)
        return self._with_hint(observation), info

    def step(self, action: Any) -> Any:
        """Takes a step."""
        observation, *rest = self.env.step(action)
        return self._with_hint(observation), *rest

    def _with_hint(self, observation: Any) -> np.ndarray:
        right = np.sign(observation[2] + 0.3 * observation[3]) if self._is_told else 0.0
        noise = self.env.unwrapped.np_random.normal(size=observation.shape)
        return np.append(noise, right).astype(np.float32)


def _corridor() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(Corridor(), 60)


def _with(wrapper: Any, *arguments: Any, **kwargs: Any) -> Any:
    return lambda environment: wrapper(environment, *arguments, **kwargs)


def _one_feature(environment: gymnasium.Env) -> gymnasium.Env:
    factors = np.array([1.0, 1.0, 1e4, 1.0], np.float32)
    return scaled(factors)(environment)


def _half_network(observation_spec: Any, action_spec: Any) -> Any:
    """Returns an actor whose actions lie between 0 and half of the highest."""
    del action_spec
    import keras

    from tfrl import networks

    return networks.Sequential(
        [
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ],
        input_spec=observation_spec,
        seed=0,
    )


_case = functools.partial(Case, rows=40)

BROKEN = {
    "named_no_reward": _case(
        "rewards", "DQN without reward", "DQN", made(CART, _with(Reward, 0.0)), 8_000
    ),
    "named_feature": _case(
        "observations",
        "PPO with one feature times 10,000",
        "PPO",
        made(CART, _one_feature),
        40_000,
        {"preset": "ppo"},
    ),
    "named_leak": _case(
        "evaluation",
        "DQN whose training observation holds the right action",
        "DQN",
        made(CART, _with(Hint, True)),
        15_000,
        {"evaluation_environment": made(CART, _with(Hint, False))},
    ),
    "named_evaluation": _case(
        "evaluation",
        "SAC evaluated in a Pendulum with actions times -1",
        "SAC",
        PENDULUM,
        5_000,
        {
            "evaluation_environment": made(
                PENDULUM,
                lambda e: gymnasium.wrappers.TransformAction(
                    e, lambda a: -a, e.action_space
                ),
            )
        },
    ),
    "named_buffer": _case(
        "replay",
        "DDQN with a buffer of 100",
        "DDQN",
        CART,
        8_000,
        {"replay_capacity": 100, "initial_collect_steps": 64},
    ),
    "named_rate": _case(
        "learning rate",
        "DQN with a learning rate of 1e-8",
        "DQN",
        CART,
        10_000,
        {"learning_rate": 1e-8, "final_learning_rate": 1e-8},
    ),
    "named_frozen": _case(
        "observations",
        "DQN that sees the first observation of each episode",
        "DQN",
        made(CART, Frozen),
        10_000,
    ),
    "named_frozen_sac": _case(
        "observations",
        "SAC that sees the first observation of each episode",
        "SAC",
        made(PENDULUM, Frozen),
        4_000,
    ),
    "named_constant": _case(
        "rewards",
        "PPO with a reward of -1 at each step of Pendulum",
        "PPO",
        made(PENDULUM, _with(Reward, 0.0, -1.0)),
        30_000,
    ),
    "named_constant_sac": _case(
        "rewards",
        "SAC with a reward of 1 at each step of Pendulum",
        "SAC",
        made(PENDULUM, _with(Reward, 0.0, 1.0)),
        4_000,
    ),
    "named_critic_rate": _case(
        "learning rate",
        "SAC with a critic's learning rate of 1",
        "SAC",
        PENDULUM,
        5_000,
        {"critic_learning_rate": 1.0},
    ),
    "named_ignored": _case(
        "actions",
        "DQN whose actions are replaced by random ones",
        "DQN",
        made(CART, OwnActions),
        10_000,
    ),
    "named_ignored_sac": _case(
        "actions",
        "SAC whose actions are replaced by random ones",
        "SAC",
        made(PENDULUM, OwnActions),
        4_000,
    ),
    "named_half": _case(
        "actions",
        "SAC on Pendulum with bounds of 0 to 1 in place of -2 to 2",
        "SAC",
        made(PENDULUM, _with(OtherBounds, 0.0, 1.0)),
        5_000,
    ),
    "named_half_clipped": _case(
        "actions",
        "TD3 on Pendulum whose actions are clipped to 0 to 1",
        "TD3",
        made(PENDULUM, Clipped),
        5_000,
    ),
    "named_half_network": _case(
        "actions",
        "DDPG with an actor that acts between 0 and 1 of -2 to 2",
        "DDPG",
        PENDULUM,
        5_000,
        {"network": {"actor_network": _half_network}},
    ),
    "named_ends": _case(
        "clock",
        "DQN on a CartPole that terminates at step 3",
        "DQN",
        made(CART, _with(Ends, 3)),
        8_000,
    ),
    "named_gamma": _case(
        "discount", "SAC with gamma 1", "SAC", PENDULUM, 5_000, {"gamma": 1.0}
    ),
    "named_flipped": _case(
        "rewards",
        "DQN with the reward times -1",
        "DQN",
        made(CART, _with(Reward, -1.0)),
        10_000,
    ),
    "named_flipped_sac": _case(
        "rewards",
        "SAC with a reward_scale_factor of -1",
        "SAC",
        PENDULUM,
        5_000,
        {"agent_arguments": {"reward_scale_factor": -1.0}},
    ),
    "named_flipped_training": _case(
        "evaluation",
        "PPO trained with the reward times -1",
        "PPO",
        made(CART, _with(Reward, -1.0)),
        30_000,
        {"evaluation_environment": CART, "preset": "ppo"},
    ),
    "named_entropy": _case(
        "entropy",
        "PPO with an entropy_regularization of 3",
        "PPO",
        CART,
        30_000,
        {"entropy_regularization": 3.0},
    ),
    "named_short_sighted": _case(
        "discount",
        "DQN on Acrobot with gamma 0.6",
        "DQN",
        "Acrobot-v1",
        10_000,
        {"gamma": 0.6},
    ),
}

HEALTHY = {
    "named_corridor_ppo": _case("", "PPO on a corridor", "PPO", _corridor, 20_000),
    "named_corridor_a2c": _case("", "A2C on a corridor", "A2C", _corridor, 40_000),
    "named_corridor_dqn": _case("", "DQN on a corridor", "DQN", _corridor, 10_000),
    "named_acrobot_dqn": _case(
        "", "DQN on Acrobot with its preset, 20,000 steps", "DQN", "Acrobot-v1", 20_000
    ),
    "named_acrobot_a2c": _case(
        "", "A2C on Acrobot with its preset", "A2C", "Acrobot-v1", 60_000
    ),
}
