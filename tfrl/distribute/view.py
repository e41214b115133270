"""The numbers of a run with actors, for the learner's log."""

from __future__ import annotations

import time
from collections.abc import Callable

from tfrl import replay_service, train
from tfrl.distribute import reports, tables


class View:
    """Measures what actors, server and learner do together, between two rows."""

    def __init__(
        self,
        loop: train.TrainingLoop,
        collected: reports.Collected,
        client: replay_service.Client,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the first interval.

        Args:
          loop: The learner's loop.
          collected: The sums of the actors' reports.
          client: A client of the server.
          now: The clock, in seconds.
        """
        self._loop = loop
        self._collected = collected
        self._client = client
        self._now = now
        self._last = (loop.iteration, now())

    def metrics(self) -> dict[str, Callable[[], float]]:
        """Returns functions for `train.Run`'s `metrics`, by name.

        `updates_per_second` is the speed since the last row, waiting included;
        `samples_per_insert` what the server has counted, and `actors_alive` the number
        of actors that have reported of late.
        """
        return {
            "updates_per_second": self._updates_per_second,
            "samples_per_insert": self._samples_per_insert,
            "actors_alive": self._collected.num_alive,
        }

    def _updates_per_second(self) -> float:
        (before, then), now = self._last, self._now()
        self._last = self._loop.iteration, now
        return (self._loop.iteration - before) / (now - then) if now > then else 0.0

    def _samples_per_insert(self) -> float:
        info = self._client.server_info()[tables.SEQUENCES].rate_limiter_info
        inserts = info.insert_stats.completed
        return info.sample_stats.completed / inserts if inserts else float("nan")
