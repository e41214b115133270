"""Fixtures that all tests of the replay service share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def start_server() -> Iterator[Any]:
    """A function that starts a `Server`, which is stopped after the module's tests."""
    servers: list[Any] = []

    def start(tables: Any, **options: Any) -> Any:
        from tfrl.replay_service import server

        servers.append(server.Server(tables, **options))
        return servers[-1]

    yield start
    for started in servers:
        started.stop()


def _queue(name: str, limiter: Any = None, **options: Any) -> Any:
    from tfrl.replay_service import item_selectors, rate_limiters, table

    return table.Table(
        name,
        sampler=item_selectors.Fifo(),
        remover=item_selectors.Fifo(),
        max_size=100_000,
        rate_limiter=limiter or rate_limiters.MinSize(1),
        max_times_sampled=1,
        **options,
    )


@pytest.fixture(scope="module")
def server(start_server: Any) -> Any:
    """One with queues: for any items, for items of a signature, for two at most."""
    from tfrl import specs
    from tfrl.replay_service import rate_limiters

    pair = {
        "a": specs.ArraySpec((2, 3), np.float32),
        "b": specs.ArraySpec((2,), np.int64),
    }
    return start_server(
        [
            _queue("any"),
            _queue("pair", signature=pair),
            _queue("queue", rate_limiters.Queue(2)),
        ]
    )


@pytest.fixture
def client(server: Any) -> Any:
    """A client of `server`, whose tables are empty."""
    client = server.localhost_client()
    for name in ("any", "pair", "queue"):
        client.reset(name)
    return client


@pytest.fixture
def drain() -> Any:
    """A function that returns the data of all items of a table, oldest first."""

    def drained(client: Any, table: str = "any") -> list[list[Any]]:
        size = client.server_info()[table].current_size
        if not size:
            return []
        samples = client.sample(table, size, emit_timesteps=False)
        return [[column.tolist() for column in sample.data] for sample in samples]

    return drained


@pytest.fixture
def filled() -> Any:
    """A function that returns a writer with steps {"a": [i, i, i], "b": i}."""

    def writer_with(client: Any, steps: int = 5, keep: int = 3) -> Any:
        writer = client.trajectory_writer(keep)
        for i in range(steps):
            writer.append({"a": np.full(3, i, np.float32), "b": i})
        return writer

    return writer_with
