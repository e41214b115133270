"""Makes the selector that a configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrl.replay_service import item_selectors
from tfrl.replay_service.engine import columns as columns_lib
from tfrl.replay_service.engine import heap_order, selection


def make(
    config: Mapping[str, Any], columns: columns_lib.Columns
) -> selection.OrderedSelector | selection.RandomSelector:
    """Returns the selector of `item_selectors.from_config(config)` for some columns."""
    selector = item_selectors.from_config(config)
    match selector:
        case item_selectors.Prioritized():
            return selection.PrioritizedSelector(columns, selector.priority_exponent)
        case item_selectors.Uniform():
            return selection.UniformSelector(columns)
        case item_selectors.MinHeap():
            return heap_order.HeapOrder(columns, 1.0)
        case item_selectors.MaxHeap():
            return heap_order.HeapOrder(columns, -1.0)
    if isinstance(selector, item_selectors.Lifo):
        return selection.NewestFirst(columns)
    return selection.OldestFirst(columns)
