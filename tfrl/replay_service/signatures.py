"""Checks trajectories against the signatures of tables."""

from __future__ import annotations

from collections.abc import Sequence

from tfrl.specs.spec_json import Leaf

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
