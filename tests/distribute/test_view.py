"""The numbers of a run with actors, with a loop, reports and a clock of the test's."""

import math

import numpy as np
import pytest

from tfrl import replay_service
from tfrl.distribute import view


class Loop:
    iteration = 5


class Collected:
    def num_alive(self):
        return 2


@pytest.fixture
def client():
    table = replay_service.Table(
        "experience",
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=10,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
    )
    server = replay_service.Server([table])
    yield server.localhost_client()
    server.stop()


def test_the_numbers_are_those_since_the_last_row_and_of_the_server(client):
    loop, seconds = Loop(), iter([0.0, 2.0, 6.0])
    metrics = view.View(
        loop,
        Collected(),
        lambda: [client.server_info()["experience"]],
        now=lambda: next(seconds),
    ).metrics()
    assert math.isnan(metrics["samples_per_insert"]())
    loop.iteration = 25
    assert metrics["updates_per_second"]() == 10.0
    loop.iteration = 27
    assert metrics["updates_per_second"]() == 0.5
    for _ in range(2):
        client.insert(np.zeros(3), {"experience": 1.0})
    assert len(list(client.sample("experience", 3))) == 3
    assert metrics["samples_per_insert"]() == 1.5
    assert metrics["actors_alive"]() == 2
