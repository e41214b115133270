"""An actor's writer, with observers and shards of the test's."""

import pytest

from tfrl.distribute.shards import home_shard
from tfrl.replay_service import errors


class Shards:
    num_shards = 2

    def __init__(self):
        self.dead = set()

    def living_client(self, shard):
        return None if shard in self.dead else shard


class Observer:
    """Flushes after the failures that the test asks for."""

    def __init__(self, client):
        self.client, self.rollouts, self.failures = client, [], []

    def __call__(self, rollout):
        self.rollouts.append(rollout)

    def flush(self, timeout_ms):
        if self.failures:
            raise self.failures.pop()


@pytest.fixture
def made():
    shards, observers = Shards(), []

    def open_observer(client):
        observers.append(Observer(client))
        return observers[-1]

    return shards, observers, home_shard.HomeWriter(shards, 5, open_observer)


def test_successive_actors_have_different_homes():
    homes = []
    for actor in range(4):
        home_shard.HomeWriter(Shards(), actor, homes.append)
    assert homes == [0, 1, 0, 1]


def test_a_writer_that_the_limiter_lets_wait_stays(made):
    _, observers, writer = made
    writer("first")
    observers[0].failures = [errors.DeadlineExceededError("later")]
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(10)
    writer.flush(10)
    writer("second")
    assert [(o.client, o.rollouts) for o in observers] == [(1, ["first", "second"])]


def test_a_writer_moves_when_its_server_is_gone_or_has_stopped(made):
    shards, observers, writer = made
    writer("first")
    shards.dead = {1}
    # A server that has stopped gives no other answer than a limiter.
    observers[0].failures = [errors.DeadlineExceededError("later")]
    writer.flush(10)
    writer("second")
    shards.dead = {0}
    observers[1].failures = [errors.ReplayUnavailable("gone")]
    writer.flush(10)
    writer("third")
    assert [(o.client, o.rollouts) for o in observers] == [
        (1, ["first"]),
        (0, ["second"]),
        (1, ["third"]),
    ]
