import tracemalloc

import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import layouts as layouts_lib
from tfrl.replay_service.engine.storage import memory, step_store

WHOLE = [[0, 0, False], [1, 0, False]]


@pytest.fixture
def store():
    made = step_store.StepStore(7, [("float32", (2,)), ("int64", ())], shared=False)
    slots = made.allocate(20)
    values = np.arange(20)
    made.write(slots, [np.stack([values, -values], 1).astype(np.float32), values])
    return made


@pytest.fixture
def layouts():
    return layouts_lib.Layouts()


def overlapping(n, length):
    return (np.arange(n)[:, None] + np.arange(length)).astype(np.int32)


def test_a_definition_has_one_layout_while_there_are_items(store, layouts):
    first = layouts.find(store, WHOLE, [2])
    payloads = layouts.add(first, overlapping(1, 2))
    assert layouts.find(store, [(0, 0, 0), (1, 0, 0)], (2,)) is first
    assert layouts.find(store, WHOLE, [3]) is not first
    other = step_store.StepStore(8, store.columns, shared=False)
    assert layouts.find(other, WHOLE, [2]) is not first
    assert len(layouts) == 1
    layouts.remove(payloads)
    assert len(layouts) == 0
    assert layouts.find(store, WHOLE, [2]).id != first.id


def test_an_item_has_columns(store, layouts):
    with pytest.raises(ValueError, match="item without columns, expected at least one"):
        layouts.find(store, [], [1])


def test_equal_layouts_of_two_writers_become_one(store, layouts):
    one, two = (layouts.find(store, WHOLE, [2]) for _ in range(2))
    first = layouts.add(one, overlapping(1, 2))
    second = layouts.add(two, overlapping(2, 2))
    assert set(second[:, 0]) == set(first[:, 0])
    assert len(layouts) == 1
    layouts.remove(first)
    assert layouts.get(second[0, 0]).slots(second[:, 1]).tolist() == [[0, 1], [1, 2]]
    layouts.remove(second)
    again = layouts.add(two, overlapping(1, 2))
    assert layouts.get(again[0, 0]) is two


def test_numbers_are_used_again_and_ids_are_not(store, layouts):
    ids = set()
    for length in range(1, 11):
        layout = layouts.find(store, WHOLE, [length])
        ids.add(layout.id)
        payloads = layouts.add(layout, overlapping(1, length))
        assert payloads[0, 0] == layout.number == 0
        layouts.remove(payloads)
        assert layout.number == -1
    assert len(ids) == 10


def test_layouts_without_items_use_no_memory(store, layouts):
    tracemalloc.start()
    try:
        for length in range(1, 10_001):
            layouts.find(store, WHOLE, [length])
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1_000_000
    assert len(layouts) == 0


def test_memory_is_checked_before_it_is_used(store, layouts, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 0)
    layout = layouts.find(store, WHOLE, [1 << 20])
    slots = np.zeros((1, 1 << 20), np.int32)
    added = [layouts.add(layout, slots) for _ in range(2)]
    with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
        layouts.add(layout, slots)
    for payloads in added:
        layouts.remove(payloads)
    assert len(layouts) == 0
    assert store.rows_in_use == 20


def test_a_definition_tells_a_reader_everything(store, layouts):
    layout = layouts.find(store, [[1, 1, True], [0, 0, False]], [2, 1])
    assert layout.definition() == {
        "mapped": False,
        "schema": 7,
        "columns": [
            {"dtype": "int64", "shape": [], "range": 1, "squeezed": True, "column": 1},
            {
                "dtype": "float32",
                "shape": [2],
                "range": 0,
                "squeezed": False,
                "column": 0,
            },
        ],
        "lengths": [2, 1],
    }
    assert layout.store is store


def test_items_keep_their_steps_until_they_are_removed(store, layouts):
    layout = layouts.find(store, WHOLE, [3])
    slots = overlapping(10, 3)
    payloads = layouts.add(layout, slots)
    store.release(np.arange(20))
    assert store.rows_in_use == 12
    np.testing.assert_array_equal(layout.slots(payloads[:, 1]), slots)
    layouts.remove(payloads[::2])
    assert store.rows_in_use == 11
    np.testing.assert_array_equal(layout.slots(payloads[1::2, 1]), slots[1::2])
    layouts.remove(payloads[1::2])
    assert store.rows_in_use == 0


def test_columns_are_gathered_from_their_own_ranges(store, layouts):
    # s[t], s[t+2] and the actions between: what n-step items look like.
    layout = layouts.find(
        store, [[0, 0, False], [1, 1, False], [1, 2, True]], [2, 3, 1]
    )
    slots = np.array([[4, 6, 4, 5, 6, 9], [0, 2, 0, 1, 2, 8]], np.int32)
    states, actions, last = layout.gather(slots)
    np.testing.assert_array_equal(states, [[[4, -4], [6, -6]], [[0, 0], [2, -2]]])
    assert states.dtype == np.float32
    assert actions.tolist() == [[4, 5, 6], [0, 1, 2]]
    assert last.tolist() == [9, 8]
    assert all(array.flags.c_contiguous for array in (states, actions, last))


def test_what_was_gathered_is_a_copy(store, layouts):
    layout = layouts.find(store, WHOLE, [1])
    gathered = layout.gather(np.array([[3]], np.int32))
    store.write(np.array([3]), [np.full((1, 2), 99, np.float32), np.array([99])])
    assert gathered[1].tolist() == [[3]]


def test_items_of_several_layouts_are_removed_at_once(store, layouts):
    rng = np.random.default_rng(0)
    payloads = np.concatenate(
        [
            layouts.add(layouts.find(store, WHOLE, [length]), overlapping(4, length))
            for length in (1, 2, 5)
        ]
    )
    store.release(np.arange(20))
    assert store.rows_in_use == 8
    rng.shuffle(payloads)
    layouts.remove(payloads)
    assert store.rows_in_use == 0
    assert layouts.nbytes == 0


def test_an_empty_layout_is_free_and_can_be_used_again(store, layouts):
    layout = layouts.find(store, WHOLE, [2])
    for _ in range(3):
        payloads = layouts.add(layout, overlapping(5, 2))
        assert layouts.nbytes > 0
        layouts.remove(payloads)
        assert layouts.nbytes == 0
    layouts.remove(np.empty((0, 2), np.int32))


def test_thousands_of_lengths_take_little(store, layouts):
    for length in range(1, 2001):
        layout = layouts.find(store, WHOLE, [length])
        layouts.remove(layouts.add(layout, np.zeros((1, length), np.int32)))
    assert layouts.nbytes == 0
    layouts.add(layout, np.zeros((1, 2000), np.int32))
    assert layouts.nbytes <= 2000 * 4 + 64


def test_rows_are_reused(store, layouts):
    layout = layouts.find(store, WHOLE, [2])
    held = [layouts.add(layout, overlapping(8, 2)) for _ in range(8)]
    before = layouts.nbytes
    for turn in range(100):
        layouts.remove(held[turn % 8])
        held[turn % 8] = layouts.add(layout, overlapping(8, 2))
    assert layouts.nbytes <= before + 4 * 64
    for payloads in held:
        np.testing.assert_array_equal(layout.slots(payloads[:, 1]), overlapping(8, 2))


@pytest.mark.parametrize(
    ("columns", "lengths", "match"),
    [
        (WHOLE, [], "positive integers"),
        (WHOLE, [0], "positive integers"),
        (WHOLE, [-1], "positive integers"),
        (WHOLE, [1.5], "positive integers"),
        (WHOLE, [True], "positive integers"),
        (WHOLE, [1 << 24, 1], "sum of at most"),
        ([[2, 0, False]], [1], "one of 2 columns"),
        ([[-1, 0, False]], [1], "one of 2 columns"),
        ([[0, 1, False]], [1], "one of the ranges"),
        ([[0, 0]], [1], r"expected \(column, range"),
        ([[0, 0, "no"]], [1], r"expected \(column, range"),
        ([[0, 0, True]], [2], "a squeezed range has 1 step"),
        (["ab"], [2], r"expected \(column, range"),
        ([[0, {}, False]], [2], r"lists of \(column"),
        (3, [2], r"lists of \(column"),
        (WHOLE, 2, r"lists of \(column"),
        ([0], [2], r"lists of \(column"),
    ],
)
def test_what_fits_no_steps_is_refused(store, layouts, columns, lengths, match):
    with pytest.raises(ValueError, match=match):
        layouts.find(store, columns, lengths)
    assert len(layouts) == 0
