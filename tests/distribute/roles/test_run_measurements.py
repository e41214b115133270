"""The numbers of a run with actors, with a loop, reports and a clock of the test's."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service, train
from tfrl.distribute.roles import run_measurements
from tfrl.distribute.weights import weight_versions


class Loop:
    iteration, steps = 5, 100

    def info(self):
        return train.IterationInfo(self.iteration, 0, self.steps, 0, 0.0, 0.0)


class Collected:
    def num_alive(self):
        return 2


class Lags:
    """Has a table of the lags so far, all of which are exact."""

    def __init__(self):
        self._lags = weight_versions.Lags()

    def add(self, *lags):
        self._lags.count(-tf.constant(lags, tf.int64), tf.constant(0, tf.int64))

    def counts(self):
        return self._lags.counts()


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


def test_the_numbers_are_those_since_the_last_row_and_of_the_servers(client):
    loop, lags, seconds = Loop(), Lags(), [10.0]
    lags.add(60)  # Before the first interval.
    seen = run_measurements.RunMeasurements(
        loop,
        Collected(),
        lags,
        lambda: [client.server_info()["experience"]] * 2,
        run_measurements.WantedProcesses(actors=3, shards=4),
        now=lambda: seconds[0],
    )
    first = seen.measure()
    unknown = [name for name, value in first.items() if math.isnan(value)]
    assert unknown == [
        "steps_per_second",
        "updates_per_second",
        "policy_lag_p50",
        "policy_lag_p99",
        "samples_per_insert",
    ]
    for _ in range(2):
        client.insert(np.zeros(3), {"experience": 1.0})
    assert len(list(client.sample("experience", 3))) == 3
    loop.iteration, loop.steps, seconds[0] = 25, 500, 12.0
    lags.add(1, 2, 7)
    assert seen.measure() == {
        "steps_per_second": 200.0,
        "updates_per_second": 10.0,
        "policy_lag_p50": 2,
        "policy_lag_p99": 7,
        "samples_per_insert": 1.5,
        "replay_size": 4,  # Two servers.
        "actors_alive": 2,
        "actors_wanted": 3,
        "shards_alive": 2,
        "shards_wanted": 4,
    }
    # The line has an interval of its own, of a second at least.
    words = [
        "10 updates a second",
        "actions from weights 2 to 7 updates old",
        "each item sampled 1.5 times",
        "4 items held",
        "2 of 3 actors",
        "2 of 4 shards",
    ]
    assert seen.words() == words
    loop.iteration, seconds[0] = 26, 12.5
    lags.add(3)
    assert seen.words() == words
    seconds[0] = 13.5
    assert seen.words()[:2] == [
        "1 updates a second",
        "actions from weights 3 to 3 updates old",
    ]
    assert seen.measure()["updates_per_second"] == pytest.approx(1 / 1.5)


def test_words_leave_out_what_is_not_known(client):
    infos = lambda: [client.server_info()["experience"]]  # noqa: E731
    wanted = run_measurements.WantedProcesses(actors=None, shards=1)
    seen = run_measurements.RunMeasurements(
        Loop(), Collected(), Lags(), infos, wanted, now=lambda: 1.0
    )
    assert seen.words() == ["0 items held"]
