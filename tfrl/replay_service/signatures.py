"""Checks items, samples and expected specs against tables, with Reverb's messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrl.specs.spec_json import Leaf

Shape = tuple[int | None, ...] | None
RowSpec = tuple[np.dtype, tuple[int, ...]]  # Of a column: its dtype and shape.

_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def mismatch(
    table: str,
    signature: Sequence[Leaf],
    columns: Sequence[tuple[str, tuple[int, ...]]],
) -> str | None:
    """Returns an error message like Reverb's if an item does not match a table.

    Args:
      table: The name of the table.
      signature: The signature of the table, flat; see `spec_json.leaves`.
      columns: The dtype's name and the shape of each column of the item.

    Returns:
      The message, or None if the item matches.
    """
    start = (
        f"Unable to create item in table '{table}' since the provided trajectory is "
        "inconsistent with the table signature. The "
    )
    if len(columns) != len(signature):
        problem = (
            f"trajectory has {len(columns)} columns but the table signature has "
            f"{len(signature)} columns."
        )
    else:
        for index, (leaf, (dtype, shape)) in enumerate(
            zip(signature, columns, strict=True)
        ):
            if dtype != leaf.dtype or not matches_shape(leaf.shape, shape):
                problem = (
                    f"table expects column {index} to be a {dtype_text(leaf.dtype)} "
                    f"{shape_text(leaf.shape)} tensor but got a {dtype_text(dtype)} "
                    f"{shape_text(shape)} tensor."
                )
                break
        else:
            return None
    got = ", ".join(_describe(i, str(i), *column) for i, column in enumerate(columns))
    return (
        f"{start}{problem}\n\nThe table signature is:\n\t{describe(signature)}\n\n"
        f"The provided trajectory signature is:\n\t{got}."
    )


def check_specs(table: str, specs: Sequence[Leaf], signature: Sequence[Leaf]) -> None:
    """Checks the expected specs of a table's items against its signature.

    Args:
      table: The name of the table.
      specs: The expected specs, flat.
      signature: The signature of the table, flat.

    Raises:
      ValueError: If the specs contradict the signature.
    """
    listed = f"Table signature: {describe(signature)}"
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
    listed = f"Table signature: {describe(specs)}"
    if len(specs) != len(columns):
        raise ValueError(
            f"Inconsistent number of tensors received from table '{table}'.  "
            f"Specification has {len(specs)} tensors, but data coming from the table "
            f"shows {len(columns)} tensors.\n{listed}."
        )
    for index, (spec, (dtype, shape)) in enumerate(zip(specs, columns, strict=True)):
        fits = matches_shape(spec.shape, shape)
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
                f"{shape_text(shape)} and element {index} had shape "
                f"{shape_text(got)}."
            )


def matches_shape(
    expected: tuple[int | None, ...] | None, shape: tuple[int, ...]
) -> bool:
    """Returns whether `shape` matches `expected`, which may have unknown sizes."""
    if expected is None or expected == shape:
        return True
    return len(expected) == len(shape) and all(
        size is None or size == other
        for size, other in zip(expected, shape, strict=True)
    )


def describe(signature: Sequence[Leaf]) -> str:
    """Returns a flat signature as text, in the form of Reverb's messages."""
    return ", ".join(
        _describe(i, str(leaf.name or _path_text(leaf.path)), leaf.dtype, leaf.shape)
        for i, leaf in enumerate(signature)
    )


def dtype_text(dtype: str) -> str:
    """Returns the name that TensorFlow's messages use for a NumPy dtype."""
    return _NAMES.get(dtype, dtype)


def shape_text(shape: tuple[int | None, ...] | None) -> str:
    """Returns a shape as in TensorFlow's messages, such as "[?,2]"."""
    if shape is None:
        return "<unknown>"
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def _describe(
    index: int, name: str, dtype: str, shape: tuple[int | None, ...] | None
) -> str:
    return (
        f"{index}: Tensor<name: '{name}', dtype: {dtype_text(dtype)}, "
        f"shape: {shape_text(shape)}>"
    )


def _path_text(path: tuple[object, ...]) -> str:
    return "/".join(map(str, path))


def _are_compatible(one: Shape, other: Shape) -> bool:
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        a is None or b is None or a == b for a, b in zip(one, other, strict=True)
    )


def _text(dtype: str, shape: Shape) -> str:
    return f"({dtype_text(dtype)}, {shape_text(shape)})"
