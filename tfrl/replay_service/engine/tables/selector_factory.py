"""Makes a table's selectors from their configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfrl.replay_service import item_selectors
from tfrl.replay_service.engine.tables import columns as columns_lib
from tfrl.replay_service.engine.tables import heap_order, insertion_order
from tfrl.replay_service.engine.tables import selectors as selectors_lib

_Columns = columns_lib.Columns
_Selector = selectors_lib.OrderedSelector | selectors_lib.RandomSelector

# The function that makes the selector of each strategy.
_MAKERS: dict[type[item_selectors.ItemSelector], Callable[[Any, _Columns], _Selector]]
_MAKERS = {
    item_selectors.Fifo: lambda _, columns: insertion_order.OldestFirst(columns),
    item_selectors.Lifo: lambda _, columns: insertion_order.NewestFirst(columns),
    item_selectors.Uniform: lambda _, columns: selectors_lib.UniformSelector(columns),
    item_selectors.Prioritized: lambda strategy, columns: (
        selectors_lib.PrioritizedSelector(columns, strategy.priority_exponent)
    ),
    item_selectors.MinHeap: lambda _, columns: heap_order.HeapOrder(columns, 1.0),
    item_selectors.MaxHeap: lambda _, columns: heap_order.HeapOrder(columns, -1.0),
}


def make(config: Mapping[str, Any], columns: _Columns) -> _Selector:
    """Returns the selector that implements a configured strategy.

    Args:
      config: The result of `to_config` of an `item_selectors.ItemSelector`.
      columns: The items of the table, still empty.

    Raises:
      ValueError: If the configuration is invalid, or no selector implements it.
    """
    strategy = item_selectors.from_config(config)
    make_selector = _MAKERS.get(type(strategy))
    if make_selector is None:
        known = sorted(kind.__name__ for kind in _MAKERS)
        raise ValueError(
            f"selector: no selector implements {type(strategy).__name__}; expected one "
            f"of {known}. Add it to engine/tables/selector_factory.py."
        )
    return make_selector(strategy, columns)
