"""Selectors under churn: order, ties, bounded memory, and accepted priorities."""

import numpy as np
import pytest

from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import heap_order, insertion_order
from tfrl.replay_service.engine.tables import selectors as selectors_lib


class Items:
    """Columns with one selector, and the items as a list of rows, the oldest first."""

    def __init__(self, make, max_size=100_000):
        self.columns = columns_lib.Columns(max_size)
        self.selector = make(self.columns)
        self.rows = []

    def insert(self, priorities):
        priorities = np.asarray(priorities, float)
        rows = self.columns.take_rows(priorities.size)
        zeros = np.zeros(priorities.size, np.int64)
        self.columns.write(rows, priorities, zeros, zeros)
        self.selector.insert(rows)
        self.rows += rows.tolist()
        return rows

    def update(self, rows, priorities):
        self.columns.set_priorities(np.asarray(rows), np.asarray(priorities, float))
        self.selector.update(np.asarray(rows))

    def delete(self, rows):
        rows = np.asarray(rows, np.int64)
        self.columns.free(rows)
        self.selector.delete(rows)
        gone = set(rows.tolist())
        self.rows = [row for row in self.rows if row not in gone]

    def ranked(self, sign):
        key = np.lexsort((self.columns.stamps[self.rows], sign * self.priorities()))
        return np.asarray(self.rows)[key]

    def priorities(self):
        return self.columns.priorities[self.rows]


@pytest.mark.parametrize(
    "order", [insertion_order.OldestFirst, insertion_order.NewestFirst]
)
def test_orders_of_insertion_outlive_deletions_anywhere(order):
    source = np.random.default_rng(0)
    items = Items(order)
    for _ in range(300):
        items.insert(np.zeros(source.integers(1, 60)))
        if source.random() < 0.8:
            count = min(len(items.rows), source.integers(1, 70))
            items.delete(source.choice(items.rows, count, replace=False))
        n = int(source.integers(1, 40))
        expected = items.rows[: -n - 1 : -1] if order.__name__[0] == "N" else items.rows
        assert items.selector.first(n).tolist() == expected[:n]
        order_of_all = np.concatenate(items.selector.order())
        valid = order_of_all[items.columns.holds(order_of_all)]
        assert columns_lib.row_of(valid).tolist() == items.rows


@pytest.mark.parametrize(
    "order", [insertion_order.OldestFirst, insertion_order.NewestFirst]
)
def test_the_few_items_left_of_many_are_found_without_looking_at_all(order):
    items = Items(order)
    rows = items.insert(np.zeros(5000))
    left = rows[[0, 2500, 4999]]
    items.delete(np.setdiff1d(rows, left))
    expected = (
        left.tolist() if order is insertion_order.OldestFirst else left[::-1].tolist()
    )
    assert items.selector.first(9).tolist() == expected
    assert items.selector._size == sum(map(len, items.selector.order())) == 3


@pytest.mark.parametrize(
    "make",
    [
        insertion_order.OldestFirst,
        insertion_order.NewestFirst,
        lambda columns: heap_order.HeapOrder(columns, 1.0),
    ],
)
def test_memory_is_bounded_under_churn(make):
    source = np.random.default_rng(1)
    items = Items(make, max_size=200)
    first = items.insert(source.random(100))
    for step in range(600):
        rows = items.insert(source.random(50))
        items.update(first[:50], source.random(50))
        items.delete(rows)
        if step % 3 == 0:
            items.selector.first(3)
        arrays = [v for v in vars(items.selector).values() if isinstance(v, np.ndarray)]
        arrays += getattr(items.selector, "_blocks", [])
        assert sum(array.size for array in arrays) < 4000
    assert items.columns.capacity < 2000


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_heap_order_is_that_of_a_sort_with_ties_by_age_of_the_update(sign):
    source = np.random.default_rng(2)
    items = Items(lambda columns: heap_order.HeapOrder(columns, sign))
    # More than fits to the front, and mostly ties.
    items.insert(source.integers(0, 4, 3000))
    for _ in range(60):
        items.insert(source.integers(0, 4, source.integers(1, 100)))
        rows = source.choice(items.rows, source.integers(1, 50))
        items.update(rows, source.integers(0, 5, rows.size))
        n = int(source.integers(1, 400))
        assert items.selector.first(n).tolist() == items.ranked(sign)[:n].tolist()
        items.delete(items.ranked(sign)[: source.integers(1, 150)])
    while items.rows:
        front = items.selector.first(70)
        assert front.tolist() == items.ranked(sign)[:70].tolist()
        items.delete(front)
    assert items.selector.first(1).size == 0


PRIORITIES = {
    "all different": lambda source, n: source.random(n),
    "all equal": lambda source, n: np.ones(n),
    "few": lambda source, n: source.integers(0, 3, n),
    # The items that a regular sample consists of are not like the others.
    "regular": lambda source, n: np.where(np.arange(n) % 10, source.random(n), 0.0),
    "mostly equal": lambda source, n: np.where(source.random(n) < 0.1, 0.5, 1.0),
}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", PRIORITIES)
def test_the_front_of_a_large_heap_is_refilled_with_its_first_items(
    kind, sign, monkeypatch
):
    for name, value in {
        "LEAST": 8,
        "MOST": 32,
        "SAMPLES": 40,
        "MARGIN": 2,
        "PART": 99,
    }.items():
        monkeypatch.setattr(heap_order, f"_{name}", value)
    source = np.random.default_rng(5)
    items = Items(lambda columns: heap_order.HeapOrder(columns, sign))
    items.insert(PRIORITIES[kind](source, 2000))
    while items.rows:
        n = int(source.integers(1, 90))
        front = items.selector.first(n)
        assert front.tolist() == items.ranked(sign)[:n].tolist()
        items.delete(front)
        items.delete(source.choice(items.rows, min(len(items.rows), 20), False))


def test_uniform_draws_reach_all_items_and_no_others():
    source = np.random.default_rng(3)
    items = Items(selectors_lib.UniformSelector)
    for _ in range(100):
        items.insert(np.zeros(source.integers(1, 30)))
        count = min(len(items.rows) - 1, source.integers(0, 30))
        items.delete(source.choice(items.rows, count, replace=False))
        assert set(items.selector.draw(50, source)) <= set(items.rows)
    assert set(items.selector.draw(100 * len(items.rows), source)) == set(items.rows)


def test_priorities_of_zero_have_no_probability_with_any_exponent():
    for exponent in (0.0, 0.5, 1.0, -1.0):
        items = Items(
            lambda columns, e=exponent: selectors_lib.PrioritizedSelector(columns, e)
        )
        rows = items.insert([0.0, 2.0, 4.0])
        masses, total = items.selector.masses(rows)
        weights = np.array([0.0, 2.0**exponent, 4.0**exponent])
        np.testing.assert_allclose(masses / total, weights / weights.sum(), rtol=1e-15)


def test_only_zeros_are_all_alike():
    items = Items(lambda columns: selectors_lib.PrioritizedSelector(columns, 0.6))
    rows = items.insert(np.zeros(5))
    items.delete(rows[:1])
    masses, total = items.selector.masses(rows[1:])
    assert (masses / total).tolist() == [0.25] * 4
    drawn = items.selector.draw(200, np.random.default_rng(4))
    assert set(drawn) == set(rows[1:].tolist())


@pytest.mark.parametrize(("exponent", "priority"), [(2.0, 1e200), (-1.0, 1e-310)])
def test_priorities_whose_powers_cannot_be_added_up_are_refused(exponent, priority):
    items = Items(lambda columns: selectors_lib.PrioritizedSelector(columns, exponent))
    items.selector.check(np.array([0.0, 1e100, 1e-100]))
    with pytest.raises(ValueError, match=r"priorities: .* to the power .*scale"):
        items.selector.check(np.array([1.0, priority]))
