"""Logs the events on a server: connections, refusals and checkpoints.

`tfrl-replay-server --verbosity=...` chooses the events that are printed.
"""

from __future__ import annotations

import logging
import time

LOGGER = logging.getLogger("tfrl.replay_service.server")
_MOST_REFUSALS = 20  # Refusals logged in one period; others are only counted.
_PERIOD = 10.0  # Seconds.


class EventLog:
    """Logs the events of one server.

    Anyone can cause refusals, so their number per period is limited.
    """

    def __init__(self) -> None:
        """Creates a log without refusals."""
        self._since = -_PERIOD
        self._refusals = 0

    def connected(self, peer: str, role: object, is_local: bool) -> None:
        """Logs that a client has been admitted.

        Args:
          peer: The address of the client.
          role: "control", "writer" or "sampler".
          is_local: Whether it uses the Unix socket.
        """
        way = "the local socket" if is_local else "TCP"
        LOGGER.info("A %s has connected over %s from %s.", role, way, peer)

    def disconnected(self, peer: str, role: object) -> None:
        """Logs that a client's connection has ended."""
        LOGGER.info("A %s from %s has disconnected.", role, peer)

    def refused(self, peer: str, reason: object) -> None:
        """Logs that a client or its message is refused, unless there are too many."""
        now = time.monotonic()
        if now - self._since > _PERIOD:
            if self._refusals > _MOST_REFUSALS:
                left_out = self._refusals - _MOST_REFUSALS
                LOGGER.warning("Refused clients %d more times.", left_out)
            self._since, self._refusals = now, 0
        self._refusals += 1
        if self._refusals <= _MOST_REFUSALS:
            LOGGER.warning("Refused a client from %s: %.500s", peer, reason)

    def wrote_checkpoint(self, path: str, seconds: float) -> None:
        """Logs that a checkpoint is complete."""
        LOGGER.info("Wrote the checkpoint %s in %.1f s.", path, seconds)

    def failed_checkpoint(self, error: BaseException) -> None:
        """Logs that a checkpoint could not be written."""
        LOGGER.error("A checkpoint could not be written: %s", error)
