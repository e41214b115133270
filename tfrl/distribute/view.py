"""The numbers of a run with actors, for the learner's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tfrl import replay_service, train
from tfrl.distribute import reports


class View:
    """Measures what actors, server and learner do together, between two rows."""

    def __init__(
        self,
        loop: train.TrainingLoop,
        collected: reports.Collected,
        infos: Callable[[], Sequence[replay_service.reverb_types.TableInfo]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the first interval.

        Args:
          loop: The learner's loop.
          collected: The sums of the actors' reports.
          infos: Asks the servers that answer for the table of sequences.
          now: The clock, in seconds.
        """
        self._loop = loop
        self._collected = collected
        self._infos = infos
        self._now = now
        self._last = (loop.iteration, now())

    def metrics(self) -> dict[str, Callable[[], float]]:
        """Returns functions for `train.Run`'s `metrics`, by name.

        `updates_per_second` is the speed since the last row, waiting included;
        `samples_per_insert` what the servers have counted, and `actors_alive` the
        number of actors that have reported of late.
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
        limiters = [info.rate_limiter_info for info in self._infos()]
        inserts = sum(limiter.insert_stats.completed for limiter in limiters)
        samples = sum(limiter.sample_stats.completed for limiter in limiters)
        return samples / inserts if inserts else float("nan")
