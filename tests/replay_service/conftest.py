"""Fixtures that all tests of the replay service share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
