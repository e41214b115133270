"""Computes the priorities of items, with a function for each table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tree

from tfrl.acme import types
from tfrl.acme.adders.reverb import steps

DEFAULT_PRIORITY_TABLE = "priority_table"

PriorityFnInput = steps.Trajectory | types.Transition
PriorityFn = Callable[[Any], float]
PriorityFnMapping = Mapping[str, PriorityFn | None]


def calculate_priorities(
    priority_fns: PriorityFnMapping, item: Any
) -> dict[str, float]:
    """Returns the priority of an item in each table.

    Args:
      priority_fns: For each table, a function that returns the priority of an item;
        None for priority 1. The item is a `Trajectory` or a `Transition` of NumPy
        arrays.
      item: The item, a nest of columns of a writer's history.
    """
    if any(priority_fns.values()):
        item = tree.map_structure(lambda column: column.numpy(), item)
    return {
        table: 1.0 if priority_fn is None else priority_fn(item)
        for table, priority_fn in priority_fns.items()
    }
