"""Wrappers for Atari games: frame stacking, firing at the start, and a time limit.

`FrameStack4` and `FireOnReset` wrap Gymnasium environments, `AtariTimeLimit` wraps a
`PyEnvironment`.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np

from tfrl.environments import py_environment, wrappers
from tfrl.trajectories import time_step as ts


class FrameStack4(gymnasium.Wrapper):
    """Shows the last four frames as the four channels of one uint8 picture.

    Observations `[H, W, 1]` or `[H, W]` become `[H, W, 4]`, the newest frame last; a
    reset fills all four. Each observation is a new array. Attributes that are not found
    here are looked up in the wrapped environment.
    """

    STACK_SIZE = 4

    def __init__(self, env: gymnasium.Env):
        """Wraps `env`.

        Args:
          env: The environment, whose observations are grey pictures.

        Raises:
          ValueError: If the observations are not grey pictures.
        """
        super().__init__(env)
        space = env.observation_space
        shape = space.shape
        is_picture = (
            isinstance(space, gymnasium.spaces.Box)
            and space.dtype == np.uint8
            and shape is not None
            and (len(shape) == 2 or (len(shape) == 3 and shape[2] == 1))
        )
        if not is_picture:
            raise ValueError(
                f"env: got the observation space {space}, expected grey pictures, a "
                "Box of uint8 [height, width, 1]; put AtariPreprocessing before "
                "FrameStack4."
            )
        assert shape is not None
        self._picture_shape = (*shape[:2], 1)
        self.observation_space = gymnasium.spaces.Box(
            0, 255, (*shape[:2], self.STACK_SIZE), np.uint8
        )
        self._stack: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.env.get_wrapper_attr(name)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; its first frame is repeated."""
        frame, info = self.env.reset(**kwargs)
        frame = frame.reshape(self._picture_shape)
        self._stack = np.repeat(frame, self.STACK_SIZE, axis=2)
        return self._stack, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps, drops the oldest frame and adds the newest."""
        frame, reward, terminated, truncated, info = self.env.step(action)
        frame = frame.reshape(self._picture_shape)
        self._stack = np.concatenate([self._stack[..., 1:], frame], axis=2)
        return self._stack, float(reward), terminated, truncated, info


class FireOnReset(gymnasium.Wrapper):
    """Takes actions 1 (FIRE) and 2 at the start of every episode.

    In some games, such as Breakout, nothing happens before a shot is fired. Games
    whose action 1 is not FIRE, or with fewer than three actions, are not changed.

    Attributes:
      has_fire: Whether the game has these actions.
    """

    def __init__(self, env: gymnasium.Env):
        """Wraps `env`."""
        super().__init__(env)
        meanings = env.get_wrapper_attr("get_action_meanings")()
        self.has_fire = len(meanings) >= 3 and meanings[1] == "FIRE"

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode and takes its first two actions."""
        observation, info = self.env.reset(**kwargs)
        if not self.has_fire:
            return observation, info
        for action in (1, 2):
            observation, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                observation, info = self.env.reset()
        return observation, info


class AtariTimeLimit(wrappers.TimeLimit):
    """Truncates games after a number of steps, counted across lives.

    If a lost life ends the episode (see `AtariPreprocessing`), the game and the count
    of steps continue in the next episode. As with `TimeLimit`, only the step type
    changes: a truncated game keeps its discount.
    """

    def __init__(self, env: py_environment.PyEnvironment, duration: float):
        """Limits the games of `env` to `duration` steps.

        Args:
          env: The environment.
          duration: The number of steps. A fraction, such as 108,000 frames divided by a
            frame skip of 7, is rounded up.

        Raises:
          ValueError: If `duration` is not positive, or `env` is batched.
        """
        super().__init__(env, math.ceil(duration))
        self._num_steps: int = 0

    @property
    def game_over(self) -> bool:
        """Whether the game has ended or reached its limit."""
        if self._num_steps >= self.duration:
            return True
        game_over = getattr(self._env, "game_over", None)
        if game_over is None:
            return bool(self._env.current_time_step().is_last())
        return bool(game_over)

    def _reset(self) -> ts.TimeStep:
        if getattr(self._env, "life_lost", False):
            if self._num_steps < self.duration:
                return self._env.reset()
            # This reset only continues the game, which has reached its limit.
            self._env.reset()
        self._num_steps = 0
        return self._env.reset()

    def _step(self, action: Any) -> ts.TimeStep:
        time_step = self._env.step(action)
        self._num_steps += 1
        if self._num_steps >= self.duration:
            time_step = time_step._replace(step_type=ts.StepType.LAST)
        return time_step
