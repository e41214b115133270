"""Checks tables and samples against expected specs, with Reverb's error messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfrl.replay_service import signatures
from tfrl.specs.spec_json import Leaf

if TYPE_CHECKING:
    from tfrl.replay_service.sampling.rows import RowSpec

Shape = tuple[int | None, ...] | None


def check_signature(
    table: str, specs: Sequence[Leaf], signature: Sequence[Leaf]
) -> None:
    """Checks the expected specs of a table's items against its signature.

    Args:
      table: The name of the table.
      specs: The expected specs, flat.
      signature: The signature of the table, flat.

    Raises:
      ValueError: If the specs contradict the signature.
    """
    listed = f"Table signature: {signatures.describe(signature)}"
    if len(specs) != len(signature):
        raise ValueError(
            f"Inconsistent number of tensors requested from table '{table}'.  "
            f"Requested {len(specs)} tensors, but table signature shows "
            f"{len(signature)} tensors.  {listed}"
        )
    for index, (spec, leaf) in enumerate(zip(specs, signature, strict=True)):
        if spec.dtype != leaf.dtype or not _are_compatible(spec.shape, leaf.shape):
            raise ValueError(
                f"Requested incompatible tensor at flattened index {index} from table "
                f"'{table}'.  Requested (dtype, shape): "
                f"{_text(spec.dtype, spec.shape)}.  Signature (dtype, shape): "
                f"{_text(leaf.dtype, leaf.shape)}.  {listed}"
            )


def check_rows(table: str, specs: Sequence[Leaf], columns: Sequence[RowSpec]) -> None:
    """Checks the columns of a table's samples against the expected specs.

    Args:
      table: The name of the table.
      specs: The expected specs, flat.
      columns: The dtype and shape of each column.

    Raises:
      ValueError: If the columns do not match the specs.
    """
    listed = f"Table signature: {signatures.describe(specs)}"
    if len(specs) != len(columns):
        raise ValueError(
            f"Inconsistent number of tensors received from table '{table}'.  "
            f"Specification has {len(specs)} tensors, but data coming from the table "
            f"shows {len(columns)} tensors.\n{listed}."
        )
    for index, (spec, (dtype, shape)) in enumerate(zip(specs, columns, strict=True)):
        fits = signatures.matches_shape(spec.shape, shape)
        if spec.dtype != dtype.name or not fits:
            raise ValueError(
                f"Received incompatible tensor at flattened index {index} from table "
                f"'{table}'.  Specification has (dtype, shape): "
                f"{_text(spec.dtype, spec.shape)}.  Tensor has (dtype, shape): "
                f"{_text(dtype.name, shape)}.\n{listed}"
            )


def check_same_shapes(
    first: Sequence[RowSpec], other: Sequence[RowSpec], index: int, offset: int
) -> None:
    """Checks that two rows can be in one batch.

    Args:
      first: The columns of the first row.
      other: The columns of another row.
      index: The index of the other row in the batch.
      offset: The number of components that precede the columns in an element.

    Raises:
      ValueError: If the shapes differ.
    """
    for column, ((_, shape), (_, got)) in enumerate(zip(first, other, strict=True)):
        if shape != got:
            raise ValueError(
                "Cannot batch tensors with different shapes in component "
                f"{column + offset}. First element had shape "
                f"{signatures.shape_text(shape)} and element {index} had shape "
                f"{signatures.shape_text(got)}."
            )


def _are_compatible(one: Shape, other: Shape) -> bool:
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        a is None or b is None or a == b for a, b in zip(one, other, strict=True)
    )


def _text(dtype: str, shape: Shape) -> str:
    return f"({signatures.dtype_text(dtype)}, {signatures.shape_text(shape)})"
