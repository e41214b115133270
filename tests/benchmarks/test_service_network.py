"""The comparison of the ways to a replay server: what is measured."""

import contextlib
import pathlib
import sys

import pytest

from benchmarks import service_network

DATA = pathlib.Path(__file__).parents[1] / "replay_service" / "data"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_each_task_is_measured_in_each_way():
    pair = tuple((DATA / name).read_bytes() for name in ("certificate.pem", "key.pem"))
    said = []
    with contextlib.ExitStack() as stack:
        ways = [
            service_network.Way("TCP", "tcp"),
            service_network.Way("TLS", "tcp", pair),
        ]
        for way in ways:
            stack.callback(way.close)
        found = service_network.compare(ways, 1, 0.02, said.append)
    tasks = {task for task, _ in found}
    assert len(tasks) == len(said) == 9
    assert set(found) == {(task, way) for task in tasks for way in ("TCP", "TLS")}
    for every, client, server in found.values():
        assert every > 0
        assert client >= 0
        assert server >= 0
