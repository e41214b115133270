"""A callback that raises the difficulty of environments as the agent learns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfrl.environments import tf_environment
from tfrl.train.runs import callbacks
from tfrl.utils import number_checks


class Curriculum(callbacks.Callback):
    """Goes to the next level of the environments when the agent masters the current.

    ```python
    ppo = tfrl.PPO(make_maze)
    levels = train.Curriculum(ppo.environment, "size", [5, 6, 8], threshold=0.7)
    ppo.learn(200_000, callbacks=[levels])
    ```

    Before training, and at each change, it sets an attribute of all environments, in
    this process or in others, or calls their method. An environment in TensorFlow has
    `levels` in its `Dynamics`. Episodes that are running then end as the environment
    likes; most read such an attribute when they are reset.

    The log has the level's number as `level`, and checkpoints hold it. Another order of
    levels is a subclass that overrides `choose`.
    """

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        name: str,
        levels: Sequence[Any],
        threshold: float,
        *,
        calls: bool = False,
        min_episodes: int = 20,
        others: Sequence[tf_environment.TFEnvironment] = (),
    ) -> None:
        """Creates the callback.

        Args:
          environment: The environment to train in, such as `ppo.environment`.
          name: The attribute, such as "size"; see `TFEnvironment.change`.
          levels: Its values, the easiest first.
          threshold: The mean return of the last ten episodes from which on the next
            level is used.
          calls: Whether `name` is a method, which is called with the value.
          min_episodes: The least number of episodes in a level.
          others: Further environments to set, such as one for evaluations, which
            otherwise keep the attribute that they were made with.

        Raises:
          ValueError: There are no levels, or a number is out of range.
        """
        if not levels:
            raise ValueError(
                "levels: got none, expected at least one value; give the values of "
                f"{name}, the easiest first."
            )
        number_checks.check_number(
            "threshold", threshold, -math.inf, remedy="give a mean return"
        )
        number_checks.check_integer(
            "min_episodes", min_episodes, 1, remedy="give a number of episodes"
        )
        self._environments = [environment, *others]
        self._name, self._levels, self._calls = name, list(levels), calls
        self._threshold, self._min_episodes = threshold, min_episodes
        self._now = self.saved_state = _Level()
        self.logged_metrics = {"level": lambda: float(self.level)}

    @property
    def level(self) -> int:
        """The number of the current level, from 0."""
        return int(self._now.number)

    def choose(self, level: int, row: Mapping[str, Any]) -> int:
        """Returns the number of the next level, the current one to stay.

        Args:
          level: The number of the current level.
          row: The numbers of the log; see `Callback.on_log`.
        """
        episodes = row.get("episodes", 0) - int(self._now.since)
        is_mastered = row.get("average_return", -math.inf) >= self._threshold
        return level + (episodes >= self._min_episodes and is_mastered)

    def on_start(self, iteration: int) -> None:
        """Sets the level of a new run, or that of the checkpoint."""
        del iteration
        self._set()

    def on_log(self, row: Mapping[str, Any]) -> None:
        """Goes to another level if `choose` says so."""
        level = min(max(self.choose(self.level, row), 0), len(self._levels) - 1)
        if level != self.level:
            self._now.number.assign(level)
            self._now.since.assign(int(row.get("episodes", 0)))
            self._set()

    def _set(self) -> None:
        """Sets the current level in all environments."""
        for environment in self._environments:
            environment.change(self._name, self._levels[self.level], self._calls)


class _Level(tf.Module):
    """What checkpoints hold: the level's number, and the episodes before it."""

    def __init__(self) -> None:
        super().__init__(name="level")
        self.number, self.since = (
            tf.Variable(0, dtype=tf.int64, trainable=False, name=name)
            for name in ("number", "since")
        )
