"""The types of samples: an item's data, and information about the draw."""

from __future__ import annotations

from typing import Any, NamedTuple


class SampleInfo(NamedTuple):
    """Information about a sampled item.

    `Client.sample` returns Python numbers as fields; datasets return tensors of
    `tf_dtypes`.

    Attributes:
      key: The key of the item, which identifies it in priority updates.
      probability: The probability of the item when it was drawn.
      table_size: The number of items in the table when the item was drawn.
      priority: The priority of the item.
      times_sampled: The number of times that the item has been drawn, including this
        time.
    """

    key: Any
    probability: Any
    table_size: Any
    priority: Any
    times_sampled: Any

    @classmethod
    def tf_dtypes(cls) -> SampleInfo:
        """Returns the `tf.DType` of each field."""
        import tensorflow as tf

        return cls(tf.uint64, tf.float64, tf.int64, tf.float64, tf.int32)

    @classmethod
    def tf_shapes(cls) -> SampleInfo:
        """Returns the `tf.TensorShape` of each field, a scalar."""
        import tensorflow as tf

        return cls(*[tf.TensorShape([]) for _ in cls._fields])

    @classmethod
    def zeros(cls) -> SampleInfo:
        """Returns a `SampleInfo` whose fields are Python zeros."""
        return cls(0, 0.0, 0, 0.0, 0)


class ReplaySample(NamedTuple):
    """A sampled item.

    Attributes:
      info: Information about the item and how it was sampled.
      data: The item's data, in the structure of the table's signature if the structure
        is known, else a list.
    """

    info: SampleInfo
    data: Any
