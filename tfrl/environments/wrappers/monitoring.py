"""Wrappers that count steps, profile them or keep infos, and change nothing else."""

from __future__ import annotations

import collections
import cProfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrl.environments import py_environment
from tfrl.environments.wrappers import base
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks


class RunStats(base.PyEnvironmentBaseWrapper):
    """Counts steps and episodes, summed over the members of a batched environment.

    A LAST step counts as an episode, a FIRST step as a reset.
    """

    def __init__(self, env: py_environment.PyEnvironment):
        """Wraps `env` and starts to count.

        Args:
          env: The environment.
        """
        super().__init__(env)
        self._episodes = 0
        self._resets = 0
        self._total_steps = 0
        self._episode_steps: Any = 0

    @property
    def episodes(self) -> int:
        """The number of episodes that have ended."""
        return self._episodes

    @property
    def resets(self) -> int:
        """The number of episodes that have begun."""
        return self._resets

    @property
    def total_steps(self) -> int:
        """The number of steps taken, without resets."""
        return self._total_steps

    @property
    def episode_steps(self) -> Any:
        """The number of steps of the current episode, an array `[B]` if batched."""
        return self._episode_steps

    def _get_wrapper_state(self) -> Any:
        return self._episodes, self._resets, self._total_steps, self._episode_steps

    def _set_wrapper_state(self, state: Any) -> None:
        self._episodes, self._resets, self._total_steps, self._episode_steps = state

    def _changed(self, time_step: ts.TimeStep) -> ts.TimeStep:
        first = np.asarray(time_step.is_first())
        self._resets += int(first.sum())
        self._episodes += int(np.sum(time_step.is_last()))
        self._total_steps += int((~first).sum())
        steps = np.where(first, 0, np.asarray(self._episode_steps) + 1)
        self._episode_steps = steps if steps.ndim else int(steps)
        return time_step


class EpisodeInfo(base.PyEnvironmentBaseWrapper):
    """Records a number, such as a success, from the `info` of each episode's last step.

    ```python
    environment = EpisodeInfo(suite_gym.load("FetchReach-v4"), "is_success")
    ...
    train.Run(loop, directory, metrics={"success_rate": environment.mean}, ...)
    ```
    """

    def __init__(
        self, env: py_environment.PyEnvironment, key: str, num_episodes: int = 100
    ):
        """Wraps `env`, and starts without numbers.

        Args:
          env: The environment, single or batched, whose info is a dictionary.
          key: The name of the number.
          num_episodes: The number of last episodes that count.

        Raises:
          TypeError: `num_episodes` is not an integer.
          ValueError: `num_episodes` is not positive.
        """
        super().__init__(env)
        number_checks.check_integer(
            "num_episodes", num_episodes, 1, remedy="100 is usual"
        )
        self._key = key
        self._values: collections.deque[float] = collections.deque(maxlen=num_episodes)

    def mean(self) -> float:
        """Returns the mean of the last episodes; NaN before one has ended."""
        return float(np.mean(self._values)) if self._values else float("nan")

    def _get_wrapper_state(self) -> Any:
        return list(self._values)

    def _set_wrapper_state(self, state: Any) -> None:
        self._values.clear()
        self._values.extend(state)

    def _step(self, action: Any) -> ts.TimeStep:
        """Steps the environment.

        Raises:
          ValueError: An episode has ended, and its info lacks the number.
        """
        time_step = self._env.step(action)
        ended = np.flatnonzero(time_step.is_last())
        if ended.size:
            self._values.extend(self._numbers(self._env.get_info(), ended))
        return time_step

    def _numbers(self, info: Any, ended: np.ndarray) -> list[float]:
        """Returns the numbers of the members that have ended."""
        try:
            # The members' infos are a list if they have different keys.
            if isinstance(info, list):
                return [float(info[member][self._key]) for member in ended]
            numbers = np.atleast_1d(info[self._key])
            # Gymnasium's mask of the members whose infos have the key.
            has = info.get(f"_{self._key}", np.ones(len(numbers), bool))
            if not np.all(np.asarray(has)[ended]):
                raise KeyError(self._key)
            return [float(numbers[member]) for member in ended]
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"key: got {self._key!r}, but an episode ended with the info {info!r}; "
                "give the key of a number that is there at the end of each episode."
            ) from error


class PerformanceProfiler(base.PyEnvironmentBaseWrapper):
    """Profiles the environment with `cProfile`, its resets included.

    ```python
    environment = PerformanceProfiler(
        environment, lambda profile: profile.print_stats("cumulative"), 1000
    )
    ```
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        process_profile_fn: Callable[[cProfile.Profile], Any],
        process_steps: int,
    ):
        """Wraps `env` and starts to profile.

        Args:
          env: The environment.
          process_profile_fn: A function that takes the profile; a new profile begins
            after each call.
          process_steps: The number of steps between two calls, without resets.

        Raises:
          TypeError: If `process_profile_fn` cannot be called, or `process_steps` is
            not an integer.
          ValueError: If `process_steps` is not positive.
        """
        super().__init__(env)
        if not callable(process_profile_fn):
            raise TypeError(
                f"process_profile_fn: got {process_profile_fn!r}, expected a function "
                "of a cProfile.Profile; give one such as "
                "lambda profile: profile.print_stats()."
            )
        self._process_profile_fn = process_profile_fn
        number_checks.check_integer(
            "process_steps", process_steps, 1, remedy="give a number of steps"
        )
        self._process_steps = process_steps
        self._profile = cProfile.Profile()
        self._num_steps = 0

    def _reset(self) -> ts.TimeStep:
        return self._profile.runcall(self._env.reset)

    def _step(self, action: Any) -> ts.TimeStep:
        time_step = self._profile.runcall(self._env.step, action)
        self._num_steps += 1
        if self._num_steps >= self._process_steps:
            profile, self._profile = self._profile, cProfile.Profile()
            self._num_steps = 0
            self._process_profile_fn(profile)
        return time_step
