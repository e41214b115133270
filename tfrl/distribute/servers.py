"""Where the replay servers of a run are, as its actors and learners know it."""

from __future__ import annotations

import dataclasses
from typing import Protocol


class Servers(Protocol):
    """The replay servers of a run, the shards of its replay."""

    @property
    def first(self) -> str:
        """The address of shard 0, which has the tables of weights and reports too."""

    def addresses(self) -> list[str]:
        """Returns the present address of each shard, in their order."""


@dataclasses.dataclass(frozen=True)
class FixedServers:
    """Servers that are started again where they were.

    Attributes:
      known: The address of each shard, "host:port".
    """

    known: tuple[str, ...]

    @property
    def first(self) -> str:
        """The address of shard 0."""
        return self.known[0]

    def addresses(self) -> list[str]:
        """Returns the address of each shard."""
        return list(self.known)
