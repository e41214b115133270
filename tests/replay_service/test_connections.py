"""Checks that every item is inserted once while connections break all the time.

Writers and a sampler reach the server through a relay that repeatedly breaks one of
their connections.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import random
import socket
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from tfrl import replay_service as reverb
from tfrl.replay_service.transport import connection

_WRITERS = 3
_PAUSE = 0.02, 0.25  # Seconds between two breaks, at least and at most.
_EPISODE = 40  # Steps.


class Relay:
    """Passes bytes between clients and a server, until it breaks their connection.

    Attributes:
      address: The address for clients.
      breaks: The number of connections that it has broken.
    """

    def __init__(self, port: int) -> None:
        """Starts the relay.

        Args:
          port: The server's port on this host.
        """
        self._port = port
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("localhost", 0))
        self.address = f"localhost:{self._listener.getsockname()[1]}"
        self.breaks = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def break_one(self, rng: random.Random) -> None:
        """Breaks a random connection, if there is one."""
        if self._pairs:
            _shut(*self._pairs.pop(rng.randrange(len(self._pairs))))
            self.breaks += 1

    def close(self) -> None:
        """Breaks all connections, and accepts no more."""
        self._listener.close()
        while self._pairs:
            _shut(*self._pairs.pop())

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("localhost", self._port))
                self._pairs.append((client, server))
                for one, other in ((client, server), (server, client)):
                    passing = threading.Thread(
                        target=_pass_on, args=(one, other), daemon=True
                    )
                    passing.start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    _shut(source, target)


def _shut(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@dataclasses.dataclass
class Findings:
    """The counts and the exceptions.

    Attributes:
      written: The items that writers made.
      there: How often each item is in the table.
      sampled: The number of samples that arrived.
      breaks: The number of connections that were broken.
      problems: The exceptions of writers and sampler.
    """

    written: set[int] = dataclasses.field(default_factory=set)
    there: collections.Counter[int] = dataclasses.field(
        default_factory=collections.Counter
    )
    sampled: int = 0
    breaks: int = 0
    problems: list[BaseException] = dataclasses.field(default_factory=list)

    def faults(self) -> list[str]:
        """Returns a line for each fault."""
        twice = [item for item, count in self.there.items() if count > 1]
        checks = {
            f"failed: {self.problems}": not self.problems,
            f"{len(twice)} items are there twice": not twice,
            f"of {len(self.written)} items {len(self.there)} are there": self.written
            == set(self.there),
            "no connection was broken": self.breaks > 0,
            "no samples arrived": self.sampled > 0,
        }
        return [what for what, is_right in checks.items() if not is_right]


def disturb(seconds: float, seed: int = 0) -> Findings:
    """Runs writers and a sampler for `seconds` while their connections break."""
    table = reverb.Table(
        "items",
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=10_000_000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )
    server = reverb.Server([table])
    findings = Findings()
    relay = Relay(server.port)
    try:
        _work(findings, relay, seconds, random.Random(seed))
        client = server.localhost_client()
        items: dict[int, int] = {}
        size = client.server_info()["items"].current_size
        while len(items) < size:
            for info, data in client.sample("items", size, emit_timesteps=False):
                items[info.key] = int(data[0][0])
        findings.there.update(items.values())
    finally:
        relay.close()
        server.stop()
    return findings


def _work(findings: Findings, relay: Relay, seconds: float, rng: random.Random) -> None:
    end = time.monotonic() + seconds
    works = [
        lambda i=i: _write(findings, relay.address, i, end) for i in range(_WRITERS)
    ]
    works.append(lambda: _sample(findings, relay.address, end))

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            findings.problems.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(rng.uniform(*_PAUSE))
        if time.monotonic() < end:
            relay.break_one(rng)
            findings.breaks = relay.breaks


def _write(findings: Findings, address: str, writer: int, end: float) -> None:
    number = 0
    with reverb.Client(address).trajectory_writer(2) as trajectory:
        while time.monotonic() < end:
            item = writer * 1_000_000_000 + number
            trajectory.append({"item": np.int64(item)})
            column = trajectory.history["item"][-1:]
            trajectory.create_item("items", 1.0, {"item": column})
            findings.written.add(item)
            number += 1
            if number % _EPISODE == 0:
                trajectory.end_episode()
            elif number % 7 == 0:
                trajectory.flush(block_until_num_items=20)


def _sample(findings: Findings, address: str, end: float) -> None:
    client = reverb.Client(address)
    while time.monotonic() < end:
        for _ in client.sample("items", 50, emit_timesteps=False):
            findings.sampled += 1


@pytest.mark.slow
def test_every_item_goes_in_once_when_connections_break_all_the_time(monkeypatch):
    # Clients use the relay instead of the server's local socket.
    monkeypatch.setenv(connection.TRANSPORT_VARIABLE, "tcp")
    assert disturb(10.0).faults() == []
