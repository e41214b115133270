"""Flattens actions to tensors and checks them; in eager code, use `action_arrays`."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.environments.boundary import action_arrays
from tfrl.specs import matching


def flatten(action: Any, spec: Any, batch_size: int) -> list[tf.Tensor]:
    """Returns the tensors of `action` in the order and with the dtypes of its specs.

    Args:
      action: A nest like `spec` of tensors, or values that convert to tensors,
        `[B, ...]`; a number without the batch if there is one member.
      spec: A nest of tensor specs, without the batch.
      batch_size: The size of the batch, `B`.

    Raises:
      ValueError: If the structure or a shape differs, or a value does not convert.
      TypeError: If a dtype is of another kind, such as floats for integers.
    """
    return [
        _as_tensor(matching.join("action", *path), leaf, leaf_spec, batch_size)
        for (path, leaf_spec), leaf in zip(
            tree.flatten_with_path(spec),
            action_arrays.leaves(action, spec),
            strict=True,
        )
    ]


def _as_tensor(where: str, value: Any, spec: Any, batch_size: int) -> tf.Tensor:
    try:
        tensor = tf.convert_to_tensor(value, dtype_hint=spec.dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: got {value!r}, expected a tensor for {spec} ({error}); pack the "
            "actions like the spec."
        ) from None
    dtypes = [np.dtype(t.dtype.as_numpy_dtype) for t in (tensor, spec)]
    if action_arrays.can_cast(*dtypes):
        tensor = tf.cast(tensor, spec.dtype)
    if batch_size == 1 and tensor.shape.rank == 0 and spec.shape.rank == 0:
        tensor = tensor[tf.newaxis]
    remedy = f"cast the action, or follow {spec}, with the batch in front"
    matching.check(
        where, tensor, spec, (batch_size,), remedy=remedy, dtype_error=TypeError
    )
    return tensor
