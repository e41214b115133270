"""Keys that carry their shard."""

import threading

import numpy as np
import pytest

from tfrl.distribute.shards.shard import (
    MOST_SHARDS,
    in_daemon_thread,
    split_keys,
    tagged_keys,
)
from tfrl.replay_service.engine.tables import columns


def test_every_key_comes_back_with_its_shard():
    random = np.random.default_rng(0)
    shards = np.repeat(np.arange(MOST_SHARDS), 4)
    numbers = random.integers(0, 2**32, len(shards), dtype=np.uint64)
    rows = random.integers(0, 2**24, len(shards), dtype=np.uint64)
    rows[:4] = 0, 2**24 - 1, 1, 2**23
    numbers[:4] = 0, 2**32 - 1, 2**32 - 1, 0
    keys = numbers << np.uint64(32) | rows
    tagged = np.concatenate(
        [tagged_keys(keys[i : i + 1], int(m)) for i, m in enumerate(shards)]
    )
    assert len(np.unique(tagged)) == len(keys)
    found, own = split_keys(tagged)
    np.testing.assert_array_equal(found, shards)
    np.testing.assert_array_equal(own, keys)


def test_a_tables_own_keys_are_those_of_shard_0():
    table = columns.Columns(max_size=10)
    rows = table.take_rows(5)
    table.write(rows, np.ones(5), np.zeros(5, np.int64), np.zeros(5, np.int64))
    found, own = split_keys(table.keys[rows])
    np.testing.assert_array_equal(found, np.zeros(5))
    np.testing.assert_array_equal(own, table.keys[rows])


def test_a_call_gives_its_result_or_its_exception():
    assert in_daemon_thread(lambda: threading.current_thread().daemon).result()
    with pytest.raises(ZeroDivisionError):
        in_daemon_thread(lambda: 1 / 0).result()


def test_a_call_that_hangs_holds_nobody():
    goes_on = threading.Event()
    hanging = in_daemon_thread(lambda: goes_on.wait() and "done")
    assert not hanging.done()
    goes_on.set()
    assert hanging.result() == "done"
