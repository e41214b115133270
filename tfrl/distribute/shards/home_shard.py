"""The home shard of an actor: the one of several replay servers to which it writes."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tfrl import replay_service

if TYPE_CHECKING:
    from tfrl import replay_buffers

_LOGGER = logging.getLogger("tfrl.distribute")

_PERIOD = 10.0  # Seconds between looks at the first shard.

_Writer = TypeVar("_Writer")
_Result = TypeVar("_Result")


class Shards(Protocol):
    """The part of a `ShardedClient` that a `HomeShard` uses."""

    @property
    def num_shards(self) -> int:
        """The number of shards."""

    def living_client(self, shard: int) -> replay_service.Client | None:
        """Returns a client of the shard's server if it answers now, else None."""


def preferences(actor: str, num_shards: int) -> list[int]:
    """Returns the shards in the order in which an actor prefers them.

    The order is pseudorandom and depends on the actor's id alone (rendezvous hashing,
    Thaler and Ravishankar, 1998). If a shard dies, only its own actors move, and they
    move to different shards.

    Args:
      actor: The id of the actor.
      num_shards: The number of shards.
    """

    def score(shard: int) -> bytes:
        return hashlib.blake2b(f"{shard}/{actor}".encode(), digest_size=8).digest()

    return sorted(range(num_shards), key=score)


class HomeShard(Generic[_Writer]):
    """Writes to an actor's home shard, and moves to the next shard when it dies.

    An episode never crosses shards: a writer that is opened after a move has no earlier
    steps. Steps that the lost server had not confirmed are lost.

    ```python
    home = HomeShard(
        shards, "actor 3", lambda client: ReverbRolloutObserver(client, ...)
    )
    home.write(lambda observer: observer(rollout))
    ```

    Attributes:
      shard: The number of the home shard.
      moves: The number of times that the actor has moved.
    """

    def __init__(
        self,
        shards: Shards,
        actor: str,
        open_writer: Callable[[replay_service.Client], _Writer],
        first: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Opens a writer at the first living shard of the actor's order.

        Args:
          shards: A `ShardedClient`.
          actor: The id of the actor.
          open_writer: Opens a writer, or an object that holds writers, with the client
            of one server.
          first: The shard that the actor prefers to all others; None takes the first
            of its `preferences`.
          now: The clock, in seconds.

        Raises:
          ReplayUnavailable: If no shard answers.
        """
        self._now = now
        self._due = now() + _PERIOD
        self._shards = shards
        self._actor = actor
        self._order = preferences(actor, shards.num_shards)
        if first is not None:
            self._order.sort(key=lambda shard: shard != first)
        self._open_writer = open_writer
        self.moves = 0
        self.shard, self._writer = self._open()

    def write(self, call: Callable[[_Writer], _Result]) -> _Result:
        """Calls a function with the writer, and again with the new writer after a move.

        Args:
          call: The function. For a new writer it must not assume earlier steps.

        Returns:
          The result of the function.

        Raises:
          ReplayUnavailable: If no shard answers.
        """
        while True:
            try:
                return call(self._writer)
            except replay_service.errors.ReplayUnavailable as error:
                lost = self.shard
                self.shard, self._writer = self._open()
                self.moves += 1
                _LOGGER.warning(
                    "%s writes to shard %d instead of shard %d, whose server is gone "
                    "(%s); the steps that it had not confirmed are lost.",
                    self._actor,
                    self.shard,
                    lost,
                    str(error).rstrip("."),
                )

    def go_home(self) -> None:
        """Moves back to the actor's first shard if it answers again.

        Call this when the server has confirmed all steps. It asks the first shard at
        most every ten seconds.
        """
        home = self._order[0]
        if self.shard == home or self._now() < self._due:
            return
        self._due = self._now() + _PERIOD
        if self._shards.living_client(home) is not None:
            self.shard, self._writer = self._open()
            _LOGGER.info("%s writes to shard %d again.", self._actor, self.shard)

    def _open(self) -> tuple[int, _Writer]:
        """Opens a writer at the first shard that answers."""
        for shard in self._order:
            client = self._shards.living_client(shard)
            if client is None:
                continue
            try:
                return shard, self._open_writer(client)
            except replay_service.errors.ReplayUnavailable:
                continue  # It has died since it answered.
        raise replay_service.errors.ReplayUnavailable(
            f"None of the {len(self._order)} shards answers {self._actor}; start their "
            "servers, or check the addresses that the resolver returns."
        )


class HomeWriter:
    """Writes rollouts like a `ReverbRolloutObserver`, to any shard that answers.

    While an actor's home shard is gone, it writes to another one. The first rollout
    after a move begins new sequences.
    """

    def __init__(
        self,
        shards: Shards,
        actor: int,
        open_observer: Callable[
            [replay_service.Client], replay_buffers.ReverbRolloutObserver
        ],
    ) -> None:
        """Connects to the actor's home shard.

        Args:
          shards: A `ShardedClient`.
          actor: The number of the actor. Successive actors have different homes.
          open_observer: Makes the observer that writes to a server.

        Raises:
          ReplayUnavailable: No shard answers.
        """
        self._shards = shards
        self._home = HomeShard(
            shards, f"actor {actor}", open_observer, first=actor % shards.num_shards
        )

    def __call__(self, rollout: Any) -> None:
        """Writes the items that a rollout completes; see `ReverbRolloutObserver`.

        Raises:
          ReplayUnavailable: No shard answers.
        """
        self._home.write(lambda observer: observer(rollout))

    def flush(self, timeout_ms: int) -> None:
        """Waits until a server has all items; the items of a server that dies are lost.

        Args:
          timeout_ms: The number of milliseconds to wait.

        Raises:
          DeadlineExceededError: Time is up first. The items are inserted later.
          ReplayUnavailable: No shard answers.
        """
        self._home.write(lambda observer: self._flush(observer, timeout_ms))
        self._home.go_home()

    def _flush(
        self, observer: replay_buffers.ReverbRolloutObserver, timeout_ms: int
    ) -> None:
        try:
            observer.flush(timeout_ms)
        except replay_service.errors.DeadlineExceededError:
            # The rate limiter makes the writer wait, or the server has stopped. The two
            # cases look the same.
            if self._shards.living_client(self._home.shard) is None:
                raise replay_service.errors.ReplayUnavailable(
                    "It does not answer."
                ) from None
            raise
