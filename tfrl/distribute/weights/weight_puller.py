"""Pulls a table's newest values in a thread, once per host, without TensorFlow.

On Linux, one of the processes of a host looks for newer values and transfers them, and
the others get the values from this process; see `host_relay`. A process that is alone
on its host has no extra cost.

Values that are not finite are left out, with a warning, since a policy with such
weights takes no sensible actions. The process that transfers values checks them, in 15
ms for 100 MB.
"""

from __future__ import annotations

import contextlib
import logging
import math
import mmap
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfrl import replay_service

if sys.platform == "linux":
    from tfrl.distribute.weights import host_relay

_LOGGER = logging.getLogger("tfrl.distribute")
# A pause lasts at least this many times as long as the look and transfer before it, so
# that large values leave processor and network free for others.
_PAUSE_FACTOR = 4.0
# Seconds without a message of the host's leader after which a process looks for values
# itself, because the leader may be stopped.
_PATIENCE = 5.0
# A process that can neither lead nor follow tries again every `_RETRY` seconds, for
# `_HANDOVER` seconds: another process may be about to listen, or to free the name.
_HANDOVER, _RETRY = 0.5, 0.005


class Leaf(NamedTuple):
    """An array of the values.

    Attributes:
      shape: The shape.
      dtype: The dtype.
      name: The name, for warnings.
      is_checked: Whether all its numbers must be finite.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    name: str
    is_checked: bool = True


class Pulled(NamedTuple):
    """Values that were pulled from a server.

    Attributes:
      number: The number of times that values had been pushed to the server.
      arrays: The newest values, as the leaves of the table's nest.
    """

    number: int
    arrays: list[np.ndarray]


class Puller:
    """Pulls values in a thread, and keeps the newest."""

    def __init__(
        self,
        client: replay_service.Client,
        table: str,
        leaves: Sequence[Leaf],
        period: float,
    ) -> None:
        """Starts the thread.

        Args:
          client: A client of the server.
          table: The name of a table of size 1.
          leaves: The leaves of its nest.
          period: The least number of seconds between two requests for newer values.
        """
        self._client = client
        self._table = table
        self._leaves = [leaf._replace(dtype=np.dtype(leaf.dtype)) for leaf in leaves]
        self._size = sum(
            math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in self._leaves
        )
        self._period = period
        # Processes of a user that have the same server belong to the same run.
        self._name = f"{client.server_address} {table}"
        self._newest: Pulled | None = None
        self._refused: int | None = None  # The number of values that were left out.
        self._error: Exception | None = None
        self._is_closed = False
        self._start()

    def newest(self) -> Pulled | None:
        """Returns the newest values that have arrived; None if the server had none.

        The first call waits until the server has answered.

        Raises:
          replay_service.ReverbError: The server has failed; a later call tries again.
        """
        if not (self._error or self._thread.is_alive()):
            self._start()
        self._has_looked.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._newest

    def close(self) -> None:
        """Ends the thread; waits for the server's answer if a request is pending."""
        if not self._is_closed:
            self._is_closed = True
            self._closer.close()
            self._thread.join(1.0)

    def _start(self) -> None:
        self._has_looked = threading.Event()
        self._waker, self._closer = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="weights", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._waker:
                while not self._is_closed:
                    self._join()
        except Exception as error:
            self._error = error
        finally:
            self._has_looked.set()

    def _join(self) -> None:
        """Leads or follows the processes of this host, or pulls values on its own."""
        if sys.platform == "linux":
            deadline = time.monotonic() + _HANDOVER
            while not self._is_closed and time.monotonic() < deadline:
                leader = host_relay.lead(self._name)
                if leader is not None:
                    with contextlib.closing(leader):
                        self._lead(leader)
                    return
                follower = host_relay.follow(self._name)
                if follower is not None:
                    with contextlib.closing(follower):
                        self._follow(follower)
                    self._wait(self._period)
                    return
                self._wait(_RETRY)
        # The system is not Linux, or another user has the name.
        started = time.monotonic()
        self._look()
        self._wait(self._pause_since(started))

    if sys.platform == "linux":

        def _lead(self, leader: host_relay.Leader) -> None:
            if self._newest is not None:
                leader.publish(*self._newest)
            while not self._is_closed:
                started = time.monotonic()
                if self._look():
                    assert self._newest is not None
                    leader.publish(*self._newest)
                leader.serve(self._pause_since(started), self._waker)

        def _follow(self, follower: host_relay.Follower) -> None:
            patience = _PATIENCE + _PAUSE_FACTOR * self._period
            while not self._is_closed:
                started = time.monotonic()
                try:
                    received = follower.receive(patience, self._waker)
                except host_relay.LeaderLostError:
                    return
                is_silent = received is None and time.monotonic() - started >= patience
                if is_silent or not (received is None or self._take(*received)):
                    self._look()
                self._has_looked.set()

    def _look(self) -> bool:
        """Transfers the newest values if they are new; returns whether they were."""
        info = self._client.server_info()[self._table]
        number = info.rate_limiter_info.insert_stats.completed
        is_new = bool(info.current_size) and number != self._refused
        is_new = is_new and not self._has(number)
        if is_new:
            [sample] = self._client.sample(self._table, 1, emit_timesteps=False)
            arrays = [steps[0] for steps in sample.data]
            is_new = self._are_finite(arrays)
            if is_new:
                self._newest, self._refused = Pulled(number, arrays), None
            else:
                self._refused = number
        self._has_looked.set()
        return is_new

    def _are_finite(self, arrays: Sequence[np.ndarray]) -> bool:
        """Returns whether values can be used; warns of the first ones that cannot."""
        bad = [
            leaf.name
            for leaf, array in zip(self._leaves, arrays, strict=True)
            if leaf.is_checked and not np.isfinite(array).all()
        ]
        if bad and self._refused is None:
            _LOGGER.warning(
                "Weights from the table %r of %s are left out: %d of %d arrays hold "
                "NaN or infinity, such as %s, expected finite numbers. This process "
                "keeps its earlier weights until finite ones arrive. If the learner "
                "has diverged, lower its learning rate; if not, something else writes "
                "into this table.",
                self._table,
                self._client.server_address,
                len(bad),
                len(arrays),
                bad[0],
            )
        return not bad

    def _has(self, number: int) -> bool:
        return self._newest is not None and self._newest.number == number

    def _take(self, number: int, data: mmap.mmap) -> bool:
        """Takes the bytes of arrays from the leader; returns whether they fit."""
        if len(data) != self._size:
            return False
        if self._has(number):  # Pulled by this process, just before.
            return True
        arrays, offset = [], 0
        for leaf in self._leaves:
            flat = np.frombuffer(data, leaf.dtype, math.prod(leaf.shape), offset)
            arrays.append(flat.reshape(leaf.shape))
            offset += flat.nbytes
        self._newest = Pulled(number, arrays)
        return True

    def _wait(self, seconds: float) -> None:
        """Waits for a time, or until this puller is closed."""
        self._waker.settimeout(seconds)
        with contextlib.suppress(TimeoutError, BlockingIOError):
            self._waker.recv(1)

    def _pause_since(self, started: float) -> float:
        """Returns the seconds to wait after a look that began at that time."""
        return max(self._period, _PAUSE_FACTOR * (time.monotonic() - started))
