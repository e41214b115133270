"""Tables against a model that does one thing at a time, with dicts and lists."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.engine import table as table_lib

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
        }


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
        removed = self.both(lambda table: table.reset())
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


@pytest.mark.parametrize("remover", SELECTORS)
@pytest.mark.parametrize("sampler", SELECTORS)
def test_batches_do_what_one_by_one_does(sampler, remover):
    source = np.random.default_rng([*map(ord, sampler + remover)])
    for limiter, limit in itertools.product(LIMITERS, (0, 1, 3)):
        table = make_table(sampler, remover, 9, limiter, limit, seed=1)
        model = Model(sampler, remover, 9, limiter, limit)
        pair = Pair(table, model, source)
        actions = source.choice(
            ["insert", "sample", "mutate", "reset", "restore"],
            size=25,
            p=[0.4, 0.37, 0.17, 0.02, 0.04],
        )
        for action in actions:
            getattr(pair, action)()
            pair.insert_more_than_allowed_is_foreseen()
            pair.check()
