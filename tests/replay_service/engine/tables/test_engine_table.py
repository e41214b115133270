"""Tables against a model that does one thing at a time, with dicts and lists."""

import dataclasses
import itertools
import json
import math
import re

import numpy as np
import pytest

from tests.pairs import pairs
from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import engine_table as table_lib
from tfrl.replay_service.engine.tables import (
    heap_order,
    insertion_order,
    selectors,
)

SELECTORS = {
    "fifo": item_selectors.Fifo(),
    "lifo": item_selectors.Lifo(),
    "uniform": item_selectors.Uniform(),
    "prioritized": item_selectors.Prioritized(0.7),
    "min_heap": item_selectors.MinHeap(),
    "max_heap": item_selectors.MaxHeap(),
}
LIMITERS = [
    rate_limiters.MinSize(1),
    rate_limiters.MinSize(4),
    rate_limiters.SampleToInsertRatio(1.5, 3, 6.0),
    rate_limiters.Queue(9),
]
NO_KEYS = np.zeros(0, np.uint64)


def make_table(
    sampler="uniform", remover="fifo", max_size=10, limiter=None, times=0, seed=0
):
    def config(selector):
        return SELECTORS.get(selector, selector).to_config()

    options = {
        "name": "t",
        "sampler": config(sampler),
        "remover": config(remover),
        "max_size": max_size,
        "max_times_sampled": times,
        "rate_limiter": (limiter or rate_limiters.MinSize(1)).to_config(),
        "signature": None,
    }
    return table_lib.EngineTable(options, seed)


def insert(table, priorities, first_id=0, episode=0):
    """Inserts items whose payloads are `(7, id)`; returns the ids that were removed."""
    n = len(priorities)
    payloads = np.stack([np.full(n, 7), np.arange(first_id, first_id + n)], axis=1)
    removed = table.insert(
        np.asarray(priorities, float),
        payloads.astype(np.int32),
        np.broadcast_to(np.asarray(episode, np.int64), n),
    )
    assert (removed[:, 0] == 7).all()
    return removed[:, 1].tolist()


def reset(table):
    """Resets a table; returns the payloads that were removed."""
    return np.concatenate([np.empty((0, 2), np.int32), *table.reset()])


def ids_of(payloads):
    return payloads[:, 1].tolist()


def key_of(table):
    """Returns the key of every id, the oldest first."""
    _, arrays = table.state()
    return dict(zip(ids_of(arrays["payloads"]), arrays["keys"].tolist(), strict=True))


@dataclasses.dataclass
class Item:
    priority: float
    episode: int
    stamp: int
    times: int = 0


class Model:
    """A table, as section 2 of the description of Reverb's behaviour has it."""

    def __init__(self, sampler, remover, max_size, limiter, limit):
        self.sampler, self.remover = sampler, remover
        self.max_size, self.limiter, self.limit = max_size, limiter, limit
        self.stamp = 0
        self.reset()

    def reset(self):
        self.items = {}
        self.inserts = self.samples = self.deletes = 0
        self.unique = self.deleted_episodes = 0
        self.episodes = {}

    def can_sample(self):
        ratio = self.limiter.samples_per_insert
        return (
            self.inserts - self.deletes >= self.limiter.min_size_to_sample
            and self.inserts * ratio - self.samples - 1 >= self.limiter.min_diff
        )

    def can_insert(self):
        ratio = self.limiter.samples_per_insert
        return (
            self.inserts + 1 - self.deletes <= self.limiter.min_size_to_sample
            or (self.inserts + 1) * ratio - self.samples <= self.limiter.max_diff
        )

    def choices(self, kind):
        """Returns the probability of every item that may be chosen."""
        items = self.items
        if kind in ("uniform", "prioritized"):
            weights = dict.fromkeys(items, 1.0)
            if kind == "prioritized" and any(item.priority for item in items.values()):
                weights = {
                    i: item.priority**0.7 if item.priority else 0.0
                    for i, item in items.items()
                }
            total = math.fsum(weights.values())
            return {i: w / total for i, w in weights.items() if w}
        orders = {
            "fifo": lambda i: list(items).index(i),
            "lifo": lambda i: -list(items).index(i),
            "min_heap": lambda i: (items[i].priority, items[i].stamp),
            "max_heap": lambda i: (-items[i].priority, items[i].stamp),
        }
        return {min(items, key=orders[kind]): 1.0}

    def next_stamp(self):
        self.stamp += 1
        return self.stamp

    def insert(self, new, priority, episode, removed):
        """Inserts; `removed` are the ids that the table says go, in order."""
        assert self.can_insert()
        self.items[new] = Item(priority, episode, self.next_stamp())
        self.episodes[episode] = self.episodes.get(episode, 0) + 1
        if len(self.items) > self.max_size:
            choices = self.choices(self.remover)
            gone = next(iter(choices)) if len(choices) == 1 else removed[0]
            assert gone in choices
            removed.remove(gone)
            self.delete(gone)
        self.inserts += 1

    def delete(self, i):
        episode = self.items.pop(i).episode
        self.deletes += 1
        self.episodes[episode] -= 1
        if not self.episodes[episode]:
            del self.episodes[episode]
            self.deleted_episodes += 1

    def sample(self, i):
        """Returns what belongs to a sample of item `i`."""
        assert self.can_sample()
        item = self.items[i]
        probability = self.choices(self.sampler)[i]
        size = len(self.items)
        self.samples += 1
        self.unique += not item.times
        item.times += 1
        if 0 < self.limit <= item.times:
            self.delete(i)
        return probability, size, item.priority, item.times

    def info(self):
        return {
            "inserts": self.inserts,
            "samples": self.samples,
            "num_deleted_items": self.deletes,
            "current_size": len(self.items),
            "num_episodes": len(self.episodes),
            "num_deleted_episodes": self.deleted_episodes,
            "num_unique_samples": self.unique,
            "total_weight": pytest.approx(self.total_weight(), rel=1e-9),
        }

    def total_weight(self):
        if self.sampler != "prioritized":
            return len(self.items)
        items = self.items.values()
        return math.fsum(i.priority**0.7 for i in items if i.priority)


class Pair:
    """A table and its model, which do the same and must agree."""

    def __init__(self, table, model, source):
        self.table, self.model, self.source = table, model, source
        self.twin = None
        self.known = []  # Keys of all times.
        self.next_id = 0

    def both(self, act):
        """Does it with the table and with what it was restored from, if anything."""
        result = act(self.table)
        if self.twin is not None:
            np.testing.assert_equal(act(self.twin), result)
        return result

    def insert(self):
        n = int(self.source.integers(1, 14))
        n = self.both(lambda table: table.insertable(n))
        priorities = self.source.choice([0.0, 0.5, 1.0, 1.0, 2.0, 7.0], n)
        episodes = self.source.integers(0, 4, n)
        removed = self.both(
            lambda table: insert(table, priorities, self.next_id, episodes)
        )
        for priority, episode in zip(priorities, episodes, strict=True):
            self.model.insert(self.next_id, priority, int(episode), removed)
            self.next_id += 1
        assert not removed
        self.known += key_of(self.table).values()

    def insert_more_than_allowed_is_foreseen(self):
        allowed = self.table.insertable(30)
        counts = self.model.inserts, self.model.samples, self.model.deletes
        expected = 0
        while expected < 30 and self.model.can_insert():
            self.model.inserts += 1
            self.model.deletes += (
                self.model.inserts - self.model.deletes > self.model.max_size
            )
            expected += 1
        self.model.inserts, self.model.samples, self.model.deletes = counts
        assert allowed == expected

    def sample(self):
        n = int(self.source.integers(1, 14))
        keys = key_of(self.table)
        samples = self.both(lambda table: table.sample(n))
        ids = ids_of(samples.payloads)
        assert samples.keys.tolist() == [keys[i] for i in ids]
        before = set(self.model.items)
        for position, i in enumerate(ids):
            probability, size, priority, times = self.model.sample(i)
            np.testing.assert_allclose(
                samples.probabilities[position], probability, rtol=1e-12
            )
            assert samples.table_sizes[position] == size
            assert samples.priorities[position] == priority
            assert samples.times_sampled[position] == times
        assert sorted(ids_of(samples.removed)) == sorted(before - set(self.model.items))
        assert len(samples.keys) == n or not self.model.can_sample()

    def mutate(self):
        ids = {key: i for i, key in key_of(self.table).items()}
        known = np.asarray([*self.known, 5, 2**64 - 1, 2**63], np.uint64)
        deletes = self.source.choice(known[-40:], self.source.integers(0, 3))
        keys = self.source.choice(known[-20:], self.source.integers(0, 12))
        priorities = self.source.choice([0.0, 0.5, 1.0, 3.0], keys.size)
        removed = self.both(lambda table: table.mutate(keys, priorities, deletes))
        gone = {ids[key] for key in deletes.tolist() if key in ids}
        assert sorted(ids_of(removed)) == sorted(gone)
        for i in gone:
            self.model.delete(i)
        for key, priority in zip(keys.tolist(), priorities.tolist(), strict=True):
            if ids.get(key) in self.model.items:
                item = self.model.items[ids[key]]
                item.priority, item.stamp = priority, self.model.next_stamp()

    def reset(self):
        removed = self.both(reset)
        assert sorted(ids_of(removed)) == sorted(self.model.items)
        self.model.reset()

    def restore(self):
        meta, arrays = self.table.state()
        self.twin, self.table = self.table, table_lib.EngineTable(self.table.options, 9)
        self.table.restore(json.loads(json.dumps(meta)), arrays)

    def check(self):
        info = self.both(lambda table: table.info())
        info["inserts"] = info["rate_limiter_info"]["insert_stats"]["completed"]
        info["samples"] = info["rate_limiter_info"]["sample_stats"]["completed"]
        expected = self.model.info()
        assert {name: info[name] for name in expected} == expected
        _, arrays = self.table.state()
        items = self.model.items
        assert ids_of(arrays["payloads"]) == list(items)
        assert arrays["priorities"].tolist() == [i.priority for i in items.values()]
        assert arrays["times_sampled"].tolist() == [i.times for i in items.values()]
        assert arrays["episodes"].tolist() == [i.episode for i in items.values()]


@pytest.mark.parametrize(("sampler", "remover"), pairs(SELECTORS, SELECTORS))
def test_batches_do_what_one_by_one_does(sampler, remover):
    source = np.random.default_rng([*map(ord, sampler + remover)])
    for limiter, limit in itertools.product(LIMITERS, (0, 1, 3)):
        table = make_table(sampler, remover, 9, limiter, limit, seed=1)
        model = Model(sampler, remover, 9, limiter, limit)
        pair = Pair(table, model, source)
        actions = source.choice(
            ["insert", "sample", "mutate", "reset", "restore"],
            size=10,
            p=[0.4, 0.37, 0.17, 0.02, 0.04],
        )
        for action in actions:
            getattr(pair, action)()
            pair.insert_more_than_allowed_is_foreseen()
            pair.check()


def key_of_rows(table):
    """Returns the keys of a table's items, without making a cut."""
    columns = table._columns
    return columns.keys[columns.living()].tolist()


def change(table, source):
    """Does something to a table."""
    action = source.choice(
        ["insert", "sample", "mutate", "reset"], p=[0.5, 0.3, 0.17, 0.03]
    )
    if action == "insert":
        n = int(source.integers(1, 14))
        first = int(source.integers(1_000_000))
        insert(table, source.random(n), first, source.integers(0, 4, n))
    elif action == "sample":
        table.sample(int(source.integers(1, 9)))
    elif action == "mutate":
        keys = np.array(list(key_of_rows(table)), np.uint64)
        keys = source.choice(keys, min(6, keys.size), replace=False)
        table.mutate(keys[:3], source.random(keys[:3].size), keys[3:])
    else:
        reset(table)


@pytest.mark.parametrize(("sampler", "remover"), pairs(SELECTORS, reversed(SELECTORS)))
def test_a_cut_has_the_state_of_its_time_whatever_follows(sampler, remover):
    source = np.random.default_rng([*map(ord, remover + sampler)])
    for limit in (0, 2, 0, 2):
        # The columns grow during some cuts.
        table = make_table(sampler, remover, 300, times=limit, seed=1)
        for changes in (3, 40, 40):
            for _ in range(changes):
                change(table, source)
            expected_meta, expected = table.state()
            cut = table.cut()
            for _ in range(60):
                change(table, source)
            cut.copy()
            for _ in range(10):
                change(table, source)
            cut.close()
            for _ in range(10):
                change(table, source)
            meta, arrays = cut.state()
            assert meta == expected_meta
            assert arrays.keys() == expected.keys()
            for name, array in expected.items():
                np.testing.assert_array_equal(arrays[name], array)


def test_sample_to_insert_ratio_lets_twelve_inserts_and_then_twenty_samples_through():
    limiter = rate_limiters.SampleToInsertRatio(4, 10, 8)
    table = make_table(max_size=100, limiter=limiter)
    assert table.sample(1).keys.size == 0
    assert table.insertable(50) == 12
    insert(table, np.ones(12))
    assert table.insertable(1) == 0
    assert table.sample(4).keys.size == 4
    assert table.insertable(50) == 1
    insert(table, [1.0], 12)
    assert table.sample(50).keys.size == 16
    assert table.sampleable(50) == 0


def test_queue_gives_every_item_once_and_in_order():
    table = make_table("fifo", "fifo", 4, rate_limiters.Queue(4), times=1)
    assert table.insertable(9) == 4
    insert(table, np.zeros(4))
    assert table.insertable(9) == 0
    samples = table.sample(3)
    assert ids_of(samples.payloads) == ids_of(samples.removed) == [0, 1, 2]
    assert samples.table_sizes.tolist() == [4, 3, 2]
    assert samples.probabilities.tolist() == [1.0, 1.0, 1.0]
    assert table.insertable(9) == 3
    insert(table, np.zeros(3), 4)
    assert ids_of(table.sample(9).payloads) == [3, 4, 5, 6]


def test_stack_gives_the_newest_item_first():
    table = make_table("lifo", "lifo", 4, rate_limiters.Stack(4), times=1)
    insert(table, np.zeros(3))
    assert ids_of(table.sample(2).payloads) == [2, 1]
    insert(table, np.zeros(2), 3)
    assert ids_of(table.sample(9).payloads) == [4, 3, 0]


@pytest.mark.parametrize(
    ("remover", "priorities", "stays"),
    [
        ("fifo", [0, 0, 0, 0, 0], [2, 3, 4]),
        ("lifo", [0, 0, 0, 0, 0], [0, 1, 2]),
        ("min_heap", [3, 1, 2, 0, 5], [0, 2, 4]),
        ("max_heap", [3, 1, 2, 0, 5], [1, 2, 3]),
        ("min_heap", [1, 1, 1, 1, 1], [2, 3, 4]),
    ],
)
def test_remover_sees_the_new_item(remover, priorities, stays):
    table = make_table("uniform", remover, 3)
    removed = insert(table, priorities)
    assert sorted(removed) == sorted({0, 1, 2, 3, 4} - set(stays))
    assert list(key_of(table)) == stays


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 2.0])
def test_a_hundred_thousand_draws_are_in_proportion(exponent):
    source = np.random.default_rng(11)
    priorities = np.where(source.random(200) < 0.2, 0.0, source.random(200) * 9)
    priorities[::7] = source.random(29) * 1e-3
    table = make_table(item_selectors.Prioritized(exponent), "fifo", 200, seed=3)
    insert(table, priorities)
    weights = np.where(priorities > 0, priorities**exponent, 0.0)
    expected = weights / weights.sum()
    seen = np.zeros(200)
    for _ in range(391):
        samples = table.sample(256)
        ids = samples.payloads[:, 1]
        np.testing.assert_allclose(samples.probabilities, expected[ids], rtol=1e-13)
        np.add.at(seen, ids, 1.0)
    _assert_drawn(seen, expected)


def _assert_drawn(seen, probabilities):
    """Asserts that counts are what probabilities make likely (Pearson's test)."""
    expected = probabilities * seen.sum()
    assert not seen[expected == 0].any()
    rare = expected < 5
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-12)
    seen = np.append(seen[~rare], seen[rare].sum())
    freedom = expected.size - 1
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert statistic < freedom + 4.0 * np.sqrt(2.0 * freedom)


@pytest.mark.parametrize("sampler", ["uniform", "prioritized"])
def test_draws_without_replacement_have_the_odds_of_one_by_one(sampler):
    priorities = np.array([1.0, 2.0, 4.0, 0.0])
    weights = np.ones(4) if sampler == "uniform" else priorities**0.7 * (priorities > 0)
    orders = list(itertools.permutations(range(4)))
    odds = []
    for order in orders:
        left, odd = dict(enumerate(weights)), 1.0
        for i in order:
            total = sum(left.values())
            odd *= left[i] / total if total else 1 / len(left)
            del left[i]
        odds.append(odd)
    table = make_table(sampler, "fifo", 4, times=1, seed=5)
    seen = np.zeros(len(orders))
    for _ in range(700):
        insert(table, priorities)
        samples = table.sample(4)
        assert samples.table_sizes.tolist() == [4, 3, 2, 1]
        order = tuple(ids_of(samples.payloads))
        seen[orders.index(order)] += 1
        np.testing.assert_allclose(
            np.prod(samples.probabilities), odds[orders.index(order)], rtol=1e-12
        )
    _assert_drawn(seen, np.asarray(odds))


@pytest.mark.parametrize("remover", ["uniform", "prioritized"])
def test_random_removers_choose_among_the_old_and_the_new(remover):
    priorities = np.array([1.0, 2.0, 0.0, 4.0])
    weights = np.ones(4) if remover == "uniform" else priorities**0.7 * (priorities > 0)
    table = make_table("fifo", remover, 3, seed=6)
    seen = np.zeros(4)
    for _ in range(1000):
        (gone,) = insert(table, priorities)
        seen[gone] += 1
        reset(table)
    _assert_drawn(seen, weights / weights.sum())


@pytest.mark.parametrize("sampler", ["uniform", "prioritized"])
def test_a_seed_makes_the_same_draws_in_batches_and_one_by_one(sampler):
    tables = [make_table(sampler, "fifo", 5000, seed=8) for _ in range(2)]
    source = np.random.default_rng(0)
    for _ in range(3):
        priorities = source.random(3000)
        insert(tables[0], priorities)
        for start in range(0, 3000, 100):
            insert(tables[1], priorities[start : start + 100], start)
        together = tables[0].sample(60)
        alone = [tables[1].sample(1) for _ in range(60)]
        for name in ("keys", "probabilities", "times_sampled", "payloads"):
            single = np.concatenate([getattr(each, name) for each in alone])
            np.testing.assert_array_equal(getattr(together, name), single)


def test_a_weight_that_dwarfs_the_others_leaves_their_probabilities_exact():
    table = make_table(item_selectors.Prioritized(1.0), "fifo", 3, times=1)
    insert(table, [1e30, 1.0, 3.0])
    samples = table.sample(3)
    assert ids_of(samples.payloads)[0] == 0
    expected = {1: [0.25, 1.0], 2: [0.75, 1.0]}[ids_of(samples.payloads)[1]]
    assert samples.probabilities[1:].tolist() == expected


def test_numbers_of_inserts_wrap_around_without_harm():
    table = make_table("uniform", "uniform", 10)
    table._columns.insert_number = 2**32 - 3
    insert(table, np.arange(6.0))
    keys = key_of(table)
    assert list(keys) == [0, 1, 2, 3, 4, 5]
    assert [key >> 32 for key in keys.values()] == [*range(2**32 - 3, 2**32), 0, 1, 2]
    table.mutate(np.array([keys[1], keys[5]], np.uint64), np.array([7.0, 8.0]), NO_KEYS)
    _, arrays = table.state()
    assert arrays["priorities"].tolist() == [0.0, 7.0, 2.0, 3.0, 4.0, 8.0]


def test_keys_of_items_that_are_gone_are_unknown_even_if_their_row_is_used_again():
    table = make_table(max_size=2)
    insert(table, [1.0, 1.0])
    old = np.array(list(key_of(table).values()), np.uint64)
    insert(table, [2.0, 2.0], 2)
    reset(table)
    insert(table, [3.0, 3.0], 4)
    assert not table.mutate(old, np.array([9.0, 9.0]), old).size
    assert table.state()[1]["priorities"].tolist() == [3.0, 3.0]
    assert len(table) == 2


@pytest.mark.parametrize("priority", [-1.0, math.nan, math.inf, -math.inf, 1e300])
def test_priorities_must_have_a_finite_sum_and_not_be_negative(priority):
    table = make_table()
    insert(table, [1.0])
    message = re.escape(f"priorities: got {priority}, expected finite numbers")
    with pytest.raises(ValueError, match=message):
        insert(table, [1.0, priority])
    keys = np.array(list(key_of(table).values()), np.uint64)
    with pytest.raises(ValueError, match=message):
        table.mutate(keys, np.array([priority]), keys)
    assert table.state()[1]["priorities"].tolist() == [1.0]
    assert table.info()["rate_limiter_info"]["insert_stats"] == {"completed": 1}


def test_keys_and_priorities_must_be_as_many():
    with pytest.raises(ValueError, match="priorities: got 1 priorities for 2 keys"):
        make_table().mutate(np.zeros(2, np.uint64), np.zeros(1), NO_KEYS)


def test_a_limiter_that_is_never_satisfied_is_refused():
    with pytest.raises(ValueError, match="10, expected at most the table's max_si"):
        make_table(max_size=5, limiter=rate_limiters.MinSize(10))


def test_info_has_every_field_of_a_table_info():
    limiter = rate_limiters.SampleToInsertRatio(2.0, 2, math.inf)
    table = make_table("prioritized", "min_heap", 3, limiter)
    insert(table, [1.0, 2.0, 3.0, 4.0], episode=[5, 5, 6, 6])
    table.sample(1)
    info = json.loads(json.dumps(table.info(), allow_nan=False))
    assert info == {
        "name": "t",
        "sampler_options": {"prioritized": {"priority_exponent": 0.7}},
        "remover_options": {"heap": {"min_heap": True}, "is_deterministic": True},
        "max_size": 3,
        "max_times_sampled": 0,
        "rate_limiter_info": {
            "samples_per_insert": 2.0,
            "min_size_to_sample": 2,
            "min_diff": "-inf",
            "max_diff": "inf",
            "insert_stats": {"completed": 4},
            "sample_stats": {"completed": 1},
        },
        "signature": None,
        "current_size": 3,
        "num_episodes": 2,
        "num_deleted_episodes": 0,
        "num_unique_samples": 1,
        "num_deleted_items": 1,
        "total_weight": pytest.approx(sum(p**0.7 for p in (2, 3, 4)), rel=1e-12),
    }


def test_those_who_wait_are_told_what_for():
    limiter = rate_limiters.SampleToInsertRatio(4.0, 10, 8.0)
    table = make_table(max_size=100, limiter=limiter)
    insert(table, np.ones(3))
    assert table.waiting_to_sample() == (
        "Table 't' waits for items: it holds 3 of the 10 that its rate limiter's "
        "min_size_to_sample asks for."
    )
    insert(table, np.ones(9))
    assert table.waiting_to_insert() == (
        "Table 't' waits for samplers: writers are ahead of them, and 12 inserts x 4.0 "
        "samples an insert - 0 samples = 48.0; one more insert would exceed its rate "
        "limiter's max_diff of 48.0. Inserts go on as soon as more is sampled, such as "
        "when a learner has compiled its program."
    )
    table.sample(16)
    assert table.waiting_to_sample() == (
        "Table 't' waits for writers: samplers are ahead of them, and 12 inserts x 4.0 "
        "samples an insert - 16 samples = 32.0; one more sample would fall below its "
        "rate limiter's min_diff of 32.0."
    )
    assert table.waiting_to_insert() == "Table 't' waits for nothing: it takes inserts."
    insert(table, [1.0])
    assert (
        table.waiting_to_sample() == "Table 't' waits for nothing: it can be sampled."
    )


def test_a_state_goes_into_a_table_of_other_selectors():
    table = make_table("uniform", "fifo", 5)
    insert(table, [3.0, 1.0, 2.0, 1.0])
    other = make_table("min_heap", "lifo", 5)
    other.restore(*table.state())
    assert ids_of(other.sample(1).payloads) == [1]
    insert(other, [0.0], 4)
    assert insert(other, [0.0], 5) == [5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta, arrays: arrays.update(keys=arrays["keys"][1:]), "the lengths"),
        (lambda meta, arrays: arrays.update(keys=arrays["keys"][[0, 0, 1]]), "3 rows"),
        (
            lambda meta, arrays: meta.update(used=2),
            "3 rows in .*, expected each of the fir",
        ),
        (lambda meta, arrays: meta.update(capacity=10**12), "in 1000000000000 rows"),
    ],
)
def test_a_state_that_is_none_is_refused(change, message):
    table = make_table(max_size=5)
    insert(table, [1.0, 2.0, 3.0])
    meta, arrays = table.state()
    change(meta, arrays)
    with pytest.raises(ValueError, match=f"checkpoint: .*{message}"):
        table.restore(meta, arrays)


def test_a_state_does_not_go_into_a_smaller_table():
    table = make_table(max_size=5)
    insert(table, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"3 items .*expected at most 2 items"):
        make_table(max_size=2).restore(*table.state())


@pytest.mark.parametrize("sampler", SELECTORS)
def test_a_full_table_takes_less_than_200_bytes_an_item(sampler):
    table = make_table(sampler, "fifo", 20_000)
    for start in range(0, 60_000, 1000):
        insert(table, np.random.default_rng(start).random(1000), start)
    columns = table._columns
    owners = [columns, *table._selectors]
    owners += [owner._tree for owner in owners if hasattr(owner, "_tree")]
    size = sum(
        array.nbytes
        for owner in owners
        for value in vars(owner).values()
        for array in (value if isinstance(value, list) else [value])
        if isinstance(array, np.ndarray)
    )
    assert size / 20_000 < 120


class Median(item_selectors.ItemSelector):
    kind = "median"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (item_selectors.Fifo(), insertion_order.OldestFirst),
        (item_selectors.Lifo(), insertion_order.NewestFirst),
        (item_selectors.Uniform(), selectors.UniformSelector),
        (item_selectors.Prioritized(0.5), selectors.PrioritizedSelector),
        (item_selectors.MinHeap(), heap_order.HeapOrder),
        (item_selectors.MaxHeap(), heap_order.HeapOrder),
    ],
)
def test_each_strategy_has_its_selector(strategy, expected):
    columns = columns_lib.Columns(10)
    assert type(table_lib.make_selector(strategy.to_config(), columns)) is expected


def test_every_strategy_that_has_a_configuration_has_a_selector():
    for kind, strategy in item_selectors._KINDS.items():
        arguments = (0.5,) if kind == "prioritized" else ()
        config = strategy(*arguments).to_config()
        assert table_lib.make_selector(config, columns_lib.Columns(10))


def test_a_strategy_without_a_selector_is_refused(monkeypatch):
    monkeypatch.setitem(item_selectors._KINDS, "median", Median)
    text = (
        "no selector implements Median; expected one of ['Fifo', 'Lifo', 'MaxHeap', "
        "'MinHeap', 'Prioritized', 'Uniform']"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        table_lib.make_selector({"kind": "median"}, columns_lib.Columns(10))
