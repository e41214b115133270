"""`EnvironmentLoop` runs an actor in an environment, episode after episode, as in Acme.

The loop steps one environment in Python. To train fast, use the loops of `tfrl.train`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from tfrl import loggers
from tfrl.acme import core
from tfrl.acme.utils import counting
from tfrl.acme.utils.observers.base import EnvLoopObserver as EnvLoopObserver
from tfrl.environments import py_environment, py_to_dm_wrapper


class EnvironmentLoop:
    """Runs an actor in an environment, and logs each episode.

    >>> import numpy as np
    >>> from tfrl import core, environment_loop, loggers
    >>> from tfrl.environments import suite_gym
    >>> class PushesRight(core.Actor):
    ...     def select_action(self, observation): return np.int64(1)
    ...     def observe_first(self, timestep): pass
    ...     def observe(self, action, next_timestep): pass
    ...     def update(self, wait=False): pass
    >>> logger = loggers.InMemoryLogger()
    >>> loop = environment_loop.EnvironmentLoop(
    ...     suite_gym.load("CartPole-v1"), PushesRight(), logger=logger
    ... )
    >>> loop.run(num_episodes=3)
    >>> [row["episodes"] for row in logger.data]
    [1, 2, 3]
    >>> logger.data[0]["episode_return"] == logger.data[0]["episode_length"]
    True
    """

    def __init__(
        self,
        environment: dm_env.Environment | py_environment.PyEnvironment,
        actor: core.Actor,
        counter: counting.Counter | None = None,
        logger: loggers.Logger | None = None,
        should_update: bool = True,
        label: str = "environment_loop",
        observers: Sequence[EnvLoopObserver] = (),
    ):
        """Creates the loop; nothing runs yet.

        Args:
          environment: An environment of dm_env, or a single `PyEnvironment`, which
            `PyToDMWrapper` then wraps for the actor and the observers.
          actor: Any object with the methods of `tfrl.acme.core.Actor`, such as an actor
            of `tfrl.acme.agents.tf.actors`.
          counter: Counts the `episodes` and `steps`; None for a counter of the loop's
            own.
          logger: Gets the results of `run_episode`; None prints them to the terminal.
          should_update: Whether to call `actor.update()` after each step; False to
            evaluate.
          label: The start of the lines of the default logger.
          observers: Objects that add measurements to the log.

        Raises:
          TypeError: If `environment` is of another kind.
          NotImplementedError: If it is batched.
        """
        if isinstance(environment, py_environment.PyEnvironment):
            environment = py_to_dm_wrapper.PyToDMWrapper(environment)
        if not isinstance(environment, dm_env.Environment):
            raise TypeError(
                f"environment: got {environment!r} of type "
                f"{type(environment).__name__}, expected a dm_env.Environment or a "
                "PyEnvironment; wrap one of Gymnasium in tfrl.acme.wrappers.GymWrapper."
            )
        self._environment = environment
        self._actor = actor
        self._counter = counting.Counter() if counter is None else counter
        self._logger = loggers.TerminalLogger(label) if logger is None else logger
        self._should_update = should_update
        self._observers = tuple(observers)

    def run_episode(self) -> dict[str, Any]:
        """Runs one episode.

        Returns:
          `episode_length`, the number of steps; `episode_return`, the undiscounted sum
          of the rewards, a nest like the reward; `steps_per_second`; the counts of the
          counter; and the observers' measurements.
        """
        start = time.perf_counter()
        num_steps = 0
        episode_return = tree.map_structure(
            lambda spec: np.zeros(spec.shape, spec.dtype),
            self._environment.reward_spec(),
        )
        timestep = self._environment.reset()
        self._actor.observe_first(timestep)
        for observer in self._observers:
            observer.observe_first(self._environment, timestep)
        while not timestep.last():
            action = self._actor.select_action(timestep.observation)
            timestep = self._environment.step(action)
            self._actor.observe(action, next_timestep=timestep)
            for observer in self._observers:
                observer.observe(self._environment, timestep, action)
            if self._should_update:
                self._actor.update()
            num_steps += 1
            episode_return = tree.map_structure(np.add, episode_return, timestep.reward)
        result = {
            "episode_length": num_steps,
            "episode_return": episode_return,
            "steps_per_second": num_steps / (time.perf_counter() - start),
            **self._counter.increment(episodes=1, steps=num_steps),
        }
        for observer in self._observers:
            result.update(observer.get_metrics())
        return result

    def run(
        self, num_episodes: int | None = None, num_steps: int | None = None
    ) -> None:
        """Runs episodes and logs each; without an argument, it runs forever.

        Args:
          num_episodes: The number of episodes to run.
          num_steps: The least number of steps to run; the last episode is finished.

        Raises:
          ValueError: If both are given.
        """
        if num_episodes is not None and num_steps is not None:
            raise ValueError(
                f"num_episodes, num_steps: got {num_episodes} and {num_steps}, "
                "expected at most one of them; leave the other out."
            )
        episodes_run, steps_run = 0, 0
        while (num_episodes is None or episodes_run < num_episodes) and (
            num_steps is None or steps_run < num_steps
        ):
            result = self.run_episode()
            episodes_run += 1
            steps_run += result["episode_length"]
            self._logger.write(result)
