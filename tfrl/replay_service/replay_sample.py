"""What samplers return: an item's data and what is known of its draw."""

from __future__ import annotations

from typing import Any, NamedTuple


class SampleInfo(NamedTuple):
    """How an item was drawn.

    Python numbers from `Client.sample`, tensors of `tf_dtypes` from datasets.

    Attributes:
      key: Names the item in its table, as when its priority is updated.
      probability: Of drawing it, at that time.
      table_size: How many items there were.
      priority: Of the item.
      times_sampled: How often it has been drawn, this time included.
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
        """Returns the `tf.TensorShape` of each field, that of a scalar."""
        import tensorflow as tf

        return cls(*[tf.TensorShape([]) for _ in cls._fields])

    @classmethod
    def zeros(cls) -> SampleInfo:
        """Returns Python zeros."""
        return cls(0, 0.0, 0, 0.0, 0)


class ReplaySample(NamedTuple):
    """A drawn item.

    Attributes:
      info: How it was drawn.
      data: Its values, in the nest of the table's signature where that is known, else
        in a list.
    """

    info: SampleInfo
    data: Any
