"""Adders that pass their steps on to other adders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfrl.acme.adders import base


class ForkingAdder(base.Adder):
    """Passes every call on to several adders."""

    def __init__(self, adders: Iterable[base.Adder]) -> None:
        """Stores the adders.

        Args:
          adders: The adders, which are called in this order.
        """
        self._adders = tuple(adders)

    def add_first(self, timestep: Any) -> None:
        """Starts an episode; see `Adder`."""
        for adder in self._adders:
            adder.add_first(timestep)

    def add(self, action: Any, next_timestep: Any, extras: Any = ()) -> None:
        """Adds a step; see `Adder`."""
        for adder in self._adders:
            adder.add(action, next_timestep, extras)

    def end_episode(self, timeout_ms: int | None = None) -> None:
        """Ends the episode; see `Adder`. The time limit applies to each adder."""
        for adder in self._adders:
            adder.end_episode(timeout_ms)

    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of the episode; see `Adder`. Each adder has the limit."""
        for adder in self._adders:
            adder.reset(timeout_ms)


class IgnoreExtrasAdder(base.Adder):
    """Passes every call on to an adder, without extras."""

    def __init__(self, adder: base.Adder) -> None:
        """Stores the adder.

        Args:
          adder: The adder that is called.
        """
        self._adder = adder

    def add_first(self, timestep: Any) -> None:
        """Starts an episode; see `Adder`."""
        self._adder.add_first(timestep)

    def add(self, action: Any, next_timestep: Any, extras: Any = ()) -> None:
        """Adds a step without its extras; see `Adder`."""
        del extras
        self._adder.add(action, next_timestep)

    def end_episode(self, timeout_ms: int | None = None) -> None:
        """Ends the episode; see `Adder`."""
        self._adder.end_episode(timeout_ms)

    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of the episode; see `Adder`."""
        self._adder.reset(timeout_ms)
