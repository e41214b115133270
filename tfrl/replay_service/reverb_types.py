"""Types for annotations, at Reverb's module path."""

from __future__ import annotations

from typing import Any

from tfrl.replay_service.item_selectors import Fifo as Fifo
from tfrl.replay_service.item_selectors import ItemSelector
from tfrl.replay_service.item_selectors import Lifo as Lifo
from tfrl.replay_service.item_selectors import MaxHeap as MaxHeap
from tfrl.replay_service.item_selectors import MinHeap as MinHeap
from tfrl.replay_service.item_selectors import Prioritized as Prioritized
from tfrl.replay_service.item_selectors import Uniform as Uniform
from tfrl.replay_service.table_info import TableInfo as TableInfo

SelectorType = ItemSelector
SpecNest = Any  # Nests of `tf.TensorSpec`s.
