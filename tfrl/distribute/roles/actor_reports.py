"""Actors' reports of their steps and episodes to a learner, through a replay server.

About once a second, an actor reports its steps and episodes since its last report. So
the learner's sums stay correct when an actor is started again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import replay_service
from tfrl.distribute import replay_servers
from tfrl.train.loops import training_loop
from tfrl.utils import mixins

_LOGGER = logging.getLogger("tfrl.distribute")
DEFAULT_TABLE = "reports"
_PERIOD = 1.0  # Seconds.
_PAUSE = 0.2  # The least number of seconds between two looks of the learner.
_MOST = 1000  # Reports that wait for a learner; older ones are lost.
_ALIVE = 10.0  # An actor counts as alive for so many seconds after its last report.
_LARGEST = 2.0**53  # float64 has all whole numbers up to this one.


def make_table() -> replay_service.Table:
    """Makes the table of reports. The learner takes each report once."""
    return replay_servers.make_table(
        DEFAULT_TABLE, _MOST, tf.TensorSpec([4], tf.float64)
    )


class Reporter:
    """Sends the reports of an actor."""

    def __init__(self, client: replay_service.Client, number: int) -> None:
        """Stores the client of the server, and the number of the actor."""
        self._client = client
        self._number = number
        self._told = (0, 0)
        self._due = float("-inf")

    def report(self, info: Callable[[], training_loop.IterationInfo]) -> None:
        """Sends the actor's counters, which `info` returns, if a report is due."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _PERIOD
        counters = info()
        steps, episodes = self._told
        self._told = counters.environment_steps, counters.episodes
        values = (
            self._number,
            counters.environment_steps - steps,
            counters.episodes - episodes,
            counters.average_return if counters.episodes else np.nan,
        )
        self._client.insert(np.array(values, np.float64), {DEFAULT_TABLE: 1.0})


class Collected(tf.Module, mixins.Untracked):
    """The sums of all reports, which checkpoints save."""

    def __init__(
        self,
        client: replay_service.Client,
        attempt: Callable[[Callable[[], None]], None] = lambda call: call(),
    ) -> None:
        """Starts at 0.

        Args:
          client: A client of the server.
          attempt: Calls a function that uses the server, if the server is there, such
            as `CentralServer.attempt`.
        """
        super().__init__()
        self._client = client
        self._attempt = attempt
        self._steps = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._episodes = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._average_return = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._due = float("-inf")
        # The newest means of the actors, by their numbers.
        self._set_untracked("_newest", {})
        # The time at which each actor's last report was taken.
        self._set_untracked("_taken_at", {})

    def counters(self) -> dict[str, Any]:
        """Returns the actors' counters, fields of an `IterationInfo`.

        The average return is the mean, over the actors, of the mean returns of the last
        10 episodes of each; 0 before the first episode.
        """
        return {
            "environment_steps": int(self._steps),
            "episodes": int(self._episodes),
            "average_return": float(self._average_return),
        }

    def num_alive(self) -> int:
        """Returns the number of actors whose reports were taken recently."""
        since = time.monotonic() - _ALIVE
        # A copy, since a call that hung may still end in its thread.
        return sum(taken_at > since for taken_at in list(self._taken_at.values()))

    def take(self) -> None:
        """Takes the new reports from the server, if a look is due, and adds them up."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _PAUSE
        self._attempt(self._take)

    def _take(self) -> None:
        size = self._client.server_info()[DEFAULT_TABLE].current_size
        if not size:
            return
        for sample in self._client.sample(DEFAULT_TABLE, size, emit_timesteps=False):
            number, steps, episodes, average_return = report = np.ravel(sample.data)
            if not all(0 <= x < _LARGEST and x == int(x) for x in report[:3]):
                _LOGGER.warning(
                    "An actor's report is left out: got the number, steps and episodes "
                    "%s, expected whole numbers of 0 or more.",
                    report[:3].tolist(),
                )
                continue
            self._steps.assign_add(int(steps))
            self._episodes.assign_add(int(episodes))
            self._newest[int(number)] = average_return
            self._taken_at[int(number)] = time.monotonic()
        known = [mean for mean in self._newest.values() if not np.isnan(mean)]
        if known:
            self._average_return.assign(np.mean(known))
