"""A replay server that all tests of the adders share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tfrl import replay_service


def _queue(name: str, limiter: Any = None) -> Any:
    """Returns a table whose items are all read, oldest first."""
    return replay_service.server.Table(
        name,
        sampler=replay_service.selectors.Fifo(),
        remover=replay_service.selectors.Fifo(),
        max_size=10_000,
        rate_limiter=limiter or replay_service.rate_limiters.MinSize(1),
        max_times_sampled=1,
    )


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A server with the table of an adder without priorities, and three more."""
    tables = [_queue(name) for name in ("priority_table", "second", "third")]
    tables.append(_queue("small", replay_service.rate_limiters.Queue(2)))
    server = replay_service.Server(tables)
    yield server
    server.stop()


@pytest.fixture
def client(server: Any) -> Any:
    """A client of the server, whose tables are empty."""
    client = server.localhost_client()
    for table in client.server_info():
        client.reset(table)
    return client


@pytest.fixture
def drain(client: Any) -> Callable[..., list[Any]]:
    """A function that takes all items out of a table, each a list of arrays."""

    def drained(table: str = "priority_table") -> list[Any]:
        size = client.server_info()[table].current_size
        if not size:
            return []
        samples = client.sample(table, size, emit_timesteps=False)
        return [sample.data for sample in samples]

    return drained
