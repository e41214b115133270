"""Writes an actor's rollouts to its home shard, one of several replay servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl import replay_buffers, replay_service
from tfrl.distribute import home_shards
from tfrl.replay_service import errors


class HomeWriter:
    """Writes rollouts like a `ReverbRolloutObserver`, to any shard that answers.

    While an actor's home shard is gone, it writes to another one. The first rollout
    after a move begins new sequences.
    """

    def __init__(
        self,
        shards: home_shards.Shards,
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
        self._home = home_shards.HomeShard(
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
        except errors.DeadlineExceededError:
            # The rate limiter makes the writer wait, or the server has stopped. The two
            # cases look the same.
            if self._shards.living_client(self._home.shard) is None:
                raise errors.ReplayUnavailable("It does not answer.") from None
            raise
