"""Checks the schema of a writer's steps, and items against tables' signatures."""

from __future__ import annotations

import reprlib
from typing import Any

from tfrl.replay_service import errors, signatures
from tfrl.replay_service.engine.serving.requests import check_count
from tfrl.replay_service.engine.serving.service import TableWaitQueues
from tfrl.replay_service.engine.storage.layout import Layout
from tfrl.replay_service.transport import limits
from tfrl.specs import dtype_names

_LONGEST_NAME = 32  # Of a dtype.

# The dtype's name and the shape of each column.
Schema = tuple[tuple[str, tuple[int, ...]], ...]


def read_schema(schema: Any) -> Schema:
    """Returns the schema in a message after checking it.

    Raises:
      ProtocolError: If there are too many columns, or one has no valid dtype or shape.
    """
    if len(schema) > limits.COLUMNS:
        raise errors.ProtocolError(
            f"Got {len(schema)} columns, expected at most {limits.COLUMNS}."
        )
    return tuple(_column(name, shape) for name, shape, *_ in schema)


def check_signature(queues: TableWaitQueues, layout: Layout) -> None:
    """Checks a layout against a table's signature.

    Raises:
      ValueError: If the layout does not match the signature.
    """
    if queues.leaves is None:
        return
    items = []
    steps = []
    for column, range_, squeezed in layout.columns:
        dtype, row = layout.store.columns[column]
        time = () if squeezed else (layout.lengths[range_],)
        items.append((dtype, (*time, *row)))
        steps.append((dtype, row))
    name = queues.table.name
    problem = signatures.mismatch(name, queues.leaves, items)
    # Items of `Client.insert` and `Client.writer` match signatures of single steps.
    if problem and signatures.mismatch(name, queues.leaves, steps):
        raise ValueError(problem)


def _column(name: Any, shape: Any) -> tuple[str, tuple[int, ...]]:
    """Returns a column of a schema after checking it.

    Raises:
      ProtocolError: If its dtype or its shape is invalid.
    """
    if not isinstance(name, str) or not isinstance(shape, list):
        raise errors.ProtocolError("Got a column without a dtype or a shape.")
    if len(name) > _LONGEST_NAME or len(shape) > limits.STEP_RANK:
        raise errors.ProtocolError(
            f"Got a column of dtype {reprlib.repr(name)} and rank {len(shape)}, "
            f"expected the name of a dtype and a rank of at most {limits.STEP_RANK}."
        )
    dtype = dtype_names.dtype_name(dtype_names.dtype_from_name(name))
    return dtype, tuple(check_count(size, "a dimension") for size in shape)
