"""Memory of rows that are not in use is given back, and there when it is needed."""

import os
import sys

import numpy as np
import pytest

from tfrl.replay_service.engine.storage import row_pool, step_store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs holes in files")
COLUMNS = [("uint8", (3000,)), ("int32", ()), ("uint8", (0,)), ("float32", (1000,))]


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(row_pool, "_CHUNK", 64 << 10)
    monkeypatch.setattr(step_store, "_LEAST_SPARE", 64 << 10)
    made = step_store.StepStore(1, COLUMNS, shared=True)
    yield made
    made.close()


def blocks(store):
    """The memory that the steps take, in bytes."""
    return os.fstat(store.fd).st_blocks * 512


def write(store, slots):
    """Writes each slot's number to all of its columns."""
    store.write(
        slots,
        [
            np.broadcast_to(
                slots.reshape(-1, *(1 for _ in shape)), (len(slots), *shape)
            ).astype(dtype)
            for dtype, shape in COLUMNS
        ],
    )


def check(store, slots):
    for column, (dtype, _) in enumerate(COLUMNS):
        read = store.read(column, slots)
        expected = slots.reshape(-1, *(1 for _ in read.shape[1:])).astype(dtype)
        assert (read == expected).all()


def give_back(store):
    """Does what a server does when nothing has been needed for a while."""
    store.spare()
    for _ in store.giving_back(store.spare()):
        pass


def test_what_was_not_needed_is_given_back_but_a_quarter(store):
    slots = store.allocate(4000)
    write(store, slots)
    full = blocks(store)
    assert store.spare() == 0
    store.release(slots[:3000])
    assert store.spare() == 0  # It was needed since the last call.
    assert store.spare() == 4000 - 1250
    give_back(store)
    assert blocks(store) <= 0.35 * full
    check(store, slots[3000:])
    assert store.spare() == 0


def test_a_few_steps_in_use_keep_little_memory(store):
    slots = store.allocate(4000)
    write(store, slots)
    kept = slots[[5, 2000, 3999]]
    store.release(np.setdiff1d(slots, kept))
    give_back(store)
    assert blocks(store) <= 3 * (64 << 10) + 3 * 4096 * 8
    check(store, kept)


def test_a_store_without_steps_keeps_nothing(store):
    slots = store.allocate(4000)
    store.release(slots)
    assert store.nbytes > 20 << 20
    give_back(store)
    assert blocks(store) == 0
    assert store.nbytes < 4096
    again = store.allocate(10)
    write(store, again)
    check(store, again)


def test_memory_that_is_given_back_is_not_given_back_again(store):
    slots = store.allocate(4000)
    store.release(slots[10:])
    store.spare()
    rows = store.spare()
    giving = store.giving_back(rows)
    next(giving)
    assert store.spare() == 0
    assert list(store.giving_back(rows)) == []
    for _ in giving:
        pass
    assert store.rows_in_use == 10


def test_little_is_left_as_it_is(store):
    slots = store.allocate(8)
    store.release(slots)
    store.spare()
    assert store.spare() == 0


def test_wide_steps_of_small_columns_are_given_back():
    store = step_store.StepStore(1, [("float32", ())] * 200, shared=True)
    slots = store.allocate(50_000)
    full = blocks(store)
    store.release(slots[:-1])
    give_back(store)
    assert blocks(store) < 0.3 * full
    store.close()


@pytest.mark.parametrize("seed", range(2))
def test_no_step_is_lost_and_every_step_has_memory(store, seed):
    rng = np.random.default_rng(seed)
    used = np.empty(0, np.int32)
    work = []  # Unfinished calls: (generator, whether it allocates).
    given = 0
    for turn in range(300):
        action = rng.integers(6)
        growing = turn % 100 < 50
        if action < (3 if growing else 1):
            work.append((store.allocating(int(rng.integers(1, 60))), True))
        elif action < 4 and len(used):
            rng.shuffle(used)
            cut = int(rng.integers(min(len(used), 100 if growing else 400)) + 1)
            store.release(used[:cut])
            used = used[cut:]
        elif action == 4:
            given += not store._gives_back
            work.append((store.giving_back(int(rng.integers(5000))), False))
        for _ in range(rng.integers(1, 8)):
            if not work:
                break
            generator, allocates = work[i := rng.integers(len(work))]
            new = None
            try:
                next(generator)
            except StopIteration as end:
                new = end.value
                del work[i]
            if allocates and new is not None:
                held = blocks(store)
                write(store, new)
                assert blocks(store) == held
                assert not np.isin(new, used).any()
                used = np.concatenate([used, new])
        check(store, used)
    assert given > 5
    assert store.rows_in_use - store._pending == len(used)
    # While a chunk is being given back or taken, the count of the memory is not exact.
    while work:
        work = [(g, a) for g, a in work if next(g, "ended") != "ended"]
    assert blocks(store) == store._arena.nbytes
