"""Makes the selector that a configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrl.replay_service import item_selectors
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import heap_order
from tfrl.replay_service.engine.tables import selectors as selectors_lib


def make(
    config: Mapping[str, Any], columns: columns_lib.Columns
) -> selectors_lib.OrderedSelector | selectors_lib.RandomSelector:
    """Returns the selector of `item_selectors.from_config(config)` for some columns."""
    selector = item_selectors.from_config(config)
    match selector:
        case item_selectors.Prioritized():
            return selectors_lib.PrioritizedSelector(
                columns, selector.priority_exponent
            )
        case item_selectors.Uniform():
            return selectors_lib.UniformSelector(columns)
        case item_selectors.MinHeap():
            return heap_order.HeapOrder(columns, 1.0)
        case item_selectors.MaxHeap():
            return heap_order.HeapOrder(columns, -1.0)
    if isinstance(selector, item_selectors.Lifo):
        return selectors_lib.NewestFirst(columns)
    return selectors_lib.OldestFirst(columns)
