"""`Counter`, which counts for several components of one program, as in Acme."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from tfrl.acme import core

Number = int | float


class Counter(core.Saveable):
    """Counts by name, and shares the counts with other counters through a parent.

    A counter with a parent passes its counts to the parent every `time_delta` seconds,
    and gets the counts of all its other children. Threads may share a counter.

    >>> learner_and_actor = Counter()
    >>> learner = Counter(learner_and_actor, prefix="learner", time_delta=0)
    >>> actor = Counter(learner_and_actor, prefix="actor", time_delta=0)
    >>> learner.increment(steps=5)
    {'learner_steps': 5}
    >>> sorted(actor.increment(steps=200, episodes=1).items())
    [('actor_episodes', 1), ('actor_steps', 200), ('learner_steps', 5)]
    """

    def __init__(
        self,
        parent: Counter | None = None,
        prefix: str = "",
        time_delta: float = 1.0,
        return_only_prefixed: bool = False,
    ):
        """Creates a counter without counts.

        Args:
          parent: The counter with which to share the counts, or None.
          prefix: Counts appear as `<prefix>_<name>`, here and in the parent; empty for
            their plain names.
          time_delta: The least number of seconds between two exchanges of counts with
            the parent. The first call of `increment` or `get_counts` always exchanges
            them.
          return_only_prefixed: Whether `increment` and `get_counts` return only the
            counts with this counter's prefix, by their plain names.

        Raises:
          ValueError: If `time_delta` is negative.
        """
        if time_delta < 0:
            raise ValueError(
                f"time_delta: got {time_delta}, expected 0 or more seconds; pass 0 "
                "to exchange counts with the parent at each use."
            )
        self._parent = parent
        self._prefix = f"{prefix}_" if prefix else ""
        self._time_delta = time_delta
        self._return_only_prefixed = return_only_prefixed and bool(prefix)
        self._lock = threading.Lock()
        # The counts that the parent does not know yet, by plain names.
        self._counts: dict[str, Number] = {}
        # The counts that the parent returned last.
        self._cache: dict[str, Number] = {}
        self._last_exchange = float("-inf")

    def increment(self, **counts: Number) -> dict[str, Number]:
        """Adds to the named counts; returns all counts, as `get_counts` does."""
        with self._lock:
            for name, value in counts.items():
                self._counts[name] = self._counts.get(name, 0) + value
            return self._get_counts()

    def get_counts(self) -> dict[str, Number]:
        """Returns all counts: the counts of this counter and of its parent.

        The parent's counts are as old as the last exchange with it.
        """
        with self._lock:
            return self._get_counts()

    def get_steps_key(self) -> str:
        """Returns the name under which `get_counts` has this counter's steps.

        Use it as the `steps_key` of loggers.
        """
        return "steps" if self._return_only_prefixed else f"{self._prefix}steps"

    def save(self) -> dict[str, dict[str, Number]]:
        """Returns the state for `restore`: numbers by name, in two dicts."""
        with self._lock:
            return {"counts": dict(self._counts), "cache": dict(self._cache)}

    def restore(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Restores a state that `save` returned; the next use asks the parent again."""
        with self._lock:
            self._counts = dict(state["counts"])
            self._cache = dict(state["cache"])
            self._last_exchange = float("-inf")

    def _get_counts(self) -> dict[str, Number]:
        if self._parent is not None:
            now = time.monotonic()
            if now - self._last_exchange >= self._time_delta:
                # If the parent cannot be reached, the counts are still here.
                self._cache = dict(self._parent.increment(**self._prefixed()))
                self._counts = {}
                self._last_exchange = now
        counts = self._prefixed()
        for name, value in self._cache.items():
            counts[name] = counts.get(name, 0) + value
        if not self._return_only_prefixed:
            return counts
        return {
            name.removeprefix(self._prefix): value
            for name, value in counts.items()
            if name.startswith(self._prefix)
        }

    def _prefixed(self) -> dict[str, Number]:
        return {f"{self._prefix}{name}": v for name, v in self._counts.items()}
