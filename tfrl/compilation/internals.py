"""TensorFlow's, Keras' and Gymnasium's private names, all of those that `tfrl` uses."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


def checkpoint_as_int32(variable: tf.Variable) -> None:
    """Has checkpoints hold a uint32 variable's words as int32.

    Checkpoints of replay buffers have always held int32; so they can be restored by
    this release and by those before it.
    """
    variable.__class__ = _int32_in_checkpoints(variable.__class__)


@functools.cache
def _int32_in_checkpoints(kind: Any) -> Any:
    class UInt32Variable(kind):
        def _serialize_to_tensors(self) -> dict[str, Any]:
            return {
                name: type(lazy)(
                    functools.partial(_read_int32, lazy), tf.int32, lazy.device
                )
                for name, lazy in super()._serialize_to_tensors().items()
            }

        def _restore_from_tensors(self, tensors: dict[str, tf.Tensor]) -> Any:
            return super()._restore_from_tensors(
                {name: tf.bitcast(x, tf.uint32) for name, x in tensors.items()}
            )

        def _copy_trackable_to_cpu(self, object_map: Any) -> None:
            super()._copy_trackable_to_cpu(object_map)
            checkpoint_as_int32(object_map[self])

    return UInt32Variable


def _read_int32(lazy: Any) -> tf.Tensor | None:
    words = lazy.tensor
    return None if words is None else tf.bitcast(words, tf.int32)
