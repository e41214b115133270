"""The shard that an actor writes to."""

import collections

import pytest

from tfrl import replay_service
from tfrl.distribute.shards import home_shard


class Shards:
    """Shards of which some answer; their clients are their numbers."""

    def __init__(self, num_shards):
        self.num_shards = num_shards
        self.dead = set()

    def living_client(self, shard):
        return None if shard in self.dead else shard


def test_actors_spread_over_shards_in_an_order_that_depends_only_on_their_id():
    first = [home_shard.preferences(f"actor {i}", 4)[0] for i in range(1000)]
    assert first == [home_shard.preferences(f"actor {i}", 4)[0] for i in range(1000)]
    counts = collections.Counter(first)
    # Five standard deviations of a binomial distribution.
    assert all(abs(counts[m] - 250) < 69 for m in range(4))


def test_only_the_actors_of_a_dead_shard_move_and_to_different_shards():
    shards = Shards(4)
    before = {f"a{i}": home_shard.HomeShard(shards, f"a{i}", str) for i in range(60)}
    shards.dead = {2}
    after = {name: home_shard.HomeShard(shards, name, str) for name in before}
    moved = {name for name in before if before[name].shard != after[name].shard}
    assert moved == {name for name in before if before[name].shard == 2}
    assert {after[name].shard for name in moved} == {0, 1, 3}


def test_a_writer_whose_server_is_gone_moves_and_begins_anew():
    shards = Shards(3)
    opened = []

    def open_writer(client):
        opened.append((client, []))
        return opened[-1]

    def append(step):
        def call(writer):
            client, steps = writer
            if client in shards.dead:
                raise replay_service.errors.ReplayUnavailable("gone.")
            steps.append(step)
            return len(steps)

        return call

    home = home_shard.HomeShard(shards, "actor 0", open_writer)
    first, second, third = home_shard.preferences("actor 0", 3)
    assert [home.write(append(step)) for step in "ab"] == [1, 2]
    shards.dead = {first}
    assert [home.write(append(step)) for step in "cd"] == [1, 2]
    shards.dead = {first, second}
    assert home.write(append("e")) == 1
    assert opened == [(first, ["a", "b"]), (second, ["c", "d"]), (third, ["e"])]
    assert (home.shard, home.moves) == (third, 2)
    shards.dead = {0, 1, 2}
    with pytest.raises(
        replay_service.errors.ReplayUnavailable, match="None of the 3 shards answers"
    ):
        home.write(append("f"))


def test_a_writer_goes_home_when_its_shard_answers_again():
    shards, seconds = Shards(3), [0.0]
    home = home_shard.HomeShard(shards, "a", str, first=2, now=lambda: seconds[0])
    assert home.shard == 2

    def fail_at_home(writer):
        if writer == "2":
            raise replay_service.errors.ReplayUnavailable("gone")

    shards.dead = {2}
    home.write(fail_at_home)
    away = home.shard
    assert away != 2
    seconds[0] = 11.0
    home.go_home()
    assert home.shard == away
    # It was asked a moment ago.
    shards.dead = set()
    seconds[0] = 20.0
    home.go_home()
    assert home.shard == away
    seconds[0] = 22.0
    home.go_home()
    assert (home.shard, home.write(str)) == (2, "2")


def test_other_errors_of_a_writer_move_nothing():
    home = home_shard.HomeShard(Shards(2), "actor", str)

    def refuse(writer):
        raise ValueError("a wrong shape")

    with pytest.raises(ValueError, match="a wrong shape"):
        home.write(refuse)
    assert home.moves == 0
