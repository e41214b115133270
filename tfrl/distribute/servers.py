"""The addresses of a run's replay servers, for its actors and learners."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from tfrl.distribute import membership, tasks


class Servers(Protocol):
    """The replay servers of a run, which are the shards of its replay."""

    @property
    def first(self) -> str:
        """The address of shard 0, which has the tables of weights and reports too."""

    def addresses(self) -> list[str]:
        """Returns the current address of each shard, in order."""


@dataclasses.dataclass(frozen=True)
class FixedServers:
    """Servers that keep their addresses when they are started again.

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


class BoardServers:
    """Servers whose current addresses are on the coordinator's board.

    Attributes:
      first: The address of shard 0 when this was made.
    """

    def __init__(self, member: membership.Membership) -> None:
        """Keeps the parts.

        Args:
          member: This process's connection to the coordinator.
        """
        self._member = member
        count = len(member.run["tables"])
        self._tasks = [tasks.Task(tasks.REPLAY, number) for number in range(count)]
        self.first = ""

    def wait(self) -> bool:
        """Waits until all servers have an address; False if this process must stop."""
        for task in self._tasks:
            if self._member.wait_for_address_of(task) is None:
                return False
        self.first = self.addresses()[0]
        return True

    def has_moved(self) -> bool:
        """Whether shard 0 has another address since `wait`."""
        return self.addresses()[0] != self.first

    def addresses(self) -> list[str]:
        """Returns the newest address of each shard."""
        return [self._member.address_of(task) or "" for task in self._tasks]
