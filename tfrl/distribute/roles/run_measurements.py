"""The numbers of a run with actors, for the learner's log and progress line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfrl import replay_service, train
from tfrl.distribute.roles import actor_reports
from tfrl.distribute.weights import weight_versions

_PAUSE = 1.0  # Seconds between two measurements for the progress line.


class WantedProcesses(NamedTuple):
    """The number of processes of each role with which a run was started.

    Attributes:
      actors: The number of actors; None if unknown.
      shards: The number of replay servers.
    """

    actors: int | None
    shards: int


class _Counts(NamedTuple):
    """The counts up to some time."""

    seconds: float
    updates: int
    steps: int
    lags: np.ndarray


class RunMeasurements:
    """Measures the work of actors, servers and learner; a `train.RunView`."""

    def __init__(
        self,
        loop: train.TrainingLoop,
        collected: actor_reports.Collected,
        lags: weight_versions.Lags,
        infos: Callable[[], Sequence[replay_service.reverb_types.TableInfo]],
        wanted: WantedProcesses,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the first interval.

        Args:
          loop: The learner's loop.
          collected: The sums of the actors' reports.
          lags: The policy lags of the frames trained on.
          infos: Asks the servers that answer for the table of sequences.
          wanted: The numbers of processes that should be alive.
          now: The clock, in seconds.
        """
        self._loop = loop
        self._collected = collected
        self._lags = lags
        self._infos = infos
        self._wanted = wanted
        self._now = now
        self._at_row = self._at_words = self._counts()
        self._words: list[str] = []

    def measure(self) -> dict[str, float]:
        """Returns the columns of a row.

        Speeds, waiting included, and policy lags are measured since the last row. A lag
        is the number of updates between the weights that chose an action and the update
        that trains on it. `samples_per_insert` is the ratio of the servers' total
        counts, and `replay_size` is the number of items that they hold. An actor counts
        as alive if it has reported recently, and a server, one of the `shards`, if it
        answers.
        """
        before, self._at_row = self._at_row, self._counts()
        return self._since(before, self._at_row)

    def words(self) -> list[str]:
        """Returns the main numbers as text, over the last second or longer."""
        if not self._words or self._now() - self._at_words.seconds >= _PAUSE:
            before, self._at_words = self._at_words, self._counts()
            self._words = _as_words(self._since(before, self._at_words))
        return self._words

    def _counts(self) -> _Counts:
        info = self._loop.info()
        lags = self._lags.counts()
        return _Counts(self._now(), info.iteration, info.environment_steps, lags)

    def _since(self, before: _Counts, now: _Counts) -> dict[str, float]:
        seconds = now.seconds - before.seconds or np.nan
        p50, p99 = weight_versions.percentiles(now.lags - before.lags, [50, 99])
        infos, wanted = self._infos(), self._wanted.actors
        limiters = [info.rate_limiter_info for info in infos]
        inserts = sum(limiter.insert_stats.completed for limiter in limiters)
        samples = sum(limiter.sample_stats.completed for limiter in limiters)
        return {
            "steps_per_second": (now.steps - before.steps) / seconds,
            "updates_per_second": (now.updates - before.updates) / seconds,
            "policy_lag_p50": p50,
            "policy_lag_p99": p99,
            "samples_per_insert": samples / inserts if inserts else np.nan,
            "replay_size": sum(info.current_size for info in infos),
            "actors_alive": self._collected.num_alive(),
            "actors_wanted": np.nan if wanted is None else wanted,
            "shards_alive": len(infos),
            "shards_wanted": self._wanted.shards,
        }


def _as_words(measured: dict[str, float]) -> list[str]:
    """Returns the text of a progress line, without numbers that were not measured."""
    words = [
        ("{updates_per_second:,.0f} updates a second", "updates_per_second"),
        (
            "actions from weights {policy_lag_p50:.0f} to {policy_lag_p99:.0f} updates "
            "old",
            "policy_lag_p50",
        ),
        ("each item sampled {samples_per_insert:.3g} times", "samples_per_insert"),
        ("{replay_size:,} items held", "replay_size"),
        ("{actors_alive} of {actors_wanted} actors", "actors_wanted"),
    ]
    if measured["shards_wanted"] > 1:
        words.append(("{shards_alive} of {shards_wanted} shards", "shards_wanted"))
    return [
        text.format(**measured) for text, name in words if not np.isnan(measured[name])
    ]
