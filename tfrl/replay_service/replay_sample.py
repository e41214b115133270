"""Samples: the data of an item, and information about its draw."""

from __future__ import annotations

from typing import Any, NamedTuple


class SampleInfo(NamedTuple):
    """Information about the draw of an item.

    The fields are Python numbers from `Client.sample`, and tensors of `tf_dtypes` from
    datasets.

    Attributes:
      key: The key of the item, which identifies it in priority updates.
      probability: The probability of the item when it was drawn.
      table_size: The number of items when it was drawn.
      priority: The priority of the item.
      times_sampled: How often the item has been drawn, including this time.
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
        """Returns an info of Python zeros."""
        return cls(0, 0.0, 0, 0.0, 0)


class ReplaySample(NamedTuple):
    """A drawn item.

    Attributes:
      info: The information about its draw.
      data: Its data, in the structure of the table's signature if that is known, else a
        list.
    """

    info: SampleInfo
    data: Any
