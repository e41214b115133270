"""Items are divided among messages that a server accepts."""

import numpy as np
import pytest

from tfrl.replay_service.transport import wire
from tfrl.replay_service.writing import items


class Layout:
    def __init__(self, width=2, num_columns=1):
        self.offsets = np.arange(width)
        self.lowest = 0
        self.num_values = 4 * num_columns + 9


def groups(*counts, **kwargs):
    made = [items.Group((), Layout(**kwargs), 0) for _ in counts]
    number = iter(range(10**6))
    for group, count in zip(made, counts, strict=True):
        group.starts = [next(number) for _ in range(count)]
        group.priorities = [1.0] * count
    return made


def split(of, most=64, num_columns=2):
    """Returns the numbers of items of each group of each message."""
    parts = list(items.split_groups(of, most, num_columns))
    starts = [start for part in parts for group in part for start in group.starts]
    assert starts == sorted(starts)
    assert all(len(g.starts) == len(g.priorities) for part in parts for g in part)
    return [[len(group.starts) for group in part] for part in parts]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([3, 4], [[3, 4]]),
        ([10], [[10]]),
        ([11], [[10], [1]]),
        ([4, 25, 2], [[4, 6], [10], [9, 1], [1]]),
        ([10, 10], [[10], [10]]),
        ([], []),
    ],
)
def test_a_message_has_a_number_of_items_at_most(counts, expected):
    assert split(groups(*counts), 10) == expected


def test_a_message_has_a_number_of_references_at_most(monkeypatch):
    monkeypatch.setattr(items, "_MOST_REFS", 100)
    assert split(groups(7, 5, width=25)) == [[4], [3, 1], [4]]
    assert split(groups(2, 1, width=1000)) == [[1], [1], [1]]


def test_a_message_has_as_many_groups_as_arrays_fit():
    parts = split(groups(*[1] * 50), 64, num_columns=wire.MAX_COLUMNS)
    assert max(map(len, parts)) == 31
    assert 1 + wire.MAX_COLUMNS + 3 * 31 <= wire.MAX_ARRAYS
    assert sum(map(len, parts)) == 50


def test_a_message_has_a_number_of_json_values_at_most():
    parts = split(groups(*[1] * 10, num_columns=wire.MAX_COLUMNS))
    assert parts == [[1] * 4, [1] * 4, [1] * 2]
    assert 4 * (4 * wire.MAX_COLUMNS + 9) < wire.MAX_JSON_VALUES
