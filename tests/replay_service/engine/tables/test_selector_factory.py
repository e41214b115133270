"""Every strategy has its selector, and one without a selector is refused."""

import re

import pytest

from tfrl.replay_service import item_selectors
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import (
    heap_order,
    insertion_order,
    selector_factory,
    selectors,
)


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
    assert type(selector_factory.make(strategy.to_config(), columns)) is expected


def test_every_strategy_that_has_a_configuration_has_a_selector():
    for kind, strategy in item_selectors._KINDS.items():
        arguments = (0.5,) if kind == "prioritized" else ()
        config = strategy(*arguments).to_config()
        assert selector_factory.make(config, columns_lib.Columns(10))


def test_a_strategy_without_a_selector_is_refused(monkeypatch):
    monkeypatch.setitem(item_selectors._KINDS, "median", Median)
    text = (
        "no selector implements Median; expected one of ['Fifo', 'Lifo', 'MaxHeap', "
        "'MinHeap', 'Prioritized', 'Uniform']"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        selector_factory.make({"kind": "median"}, columns_lib.Columns(10))
