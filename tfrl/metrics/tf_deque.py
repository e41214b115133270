"""A ring buffer of the latest values, held in variables."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import accelerators, context, stored_values
from tfrl.typing import types


class TFDeque(tf.Module):
    """Keeps the last `max_len` values of one shape and dtype.

    It works eagerly, inside tf.functions and, except for `data`, under XLA.
    """

    def __init__(
        self,
        max_len: int,
        dtype: tf.DType,
        shape: types.Shape = (),
        name: str = "TFDeque",
    ) -> None:
        """Creates an empty deque for values of `shape` and `dtype`.

        Raises:
          ValueError: If `max_len` is below 1.
        """
        super().__init__(name=name)
        if max_len < 1:
            raise ValueError(
                f"max_len: got {max_len}, but a deque holds at least one value; "
                "pass a number of 1 or more."
            )
        self._max_len = int(max_len)
        self._shape = tf.TensorShape(shape)
        self._dtype = tf.as_dtype(dtype)
        # There is one extra row for skipped values, so that the shapes of a write do
        # not depend on data.
        self._buffer = stored_values.zeros(
            [self._max_len + 1, *self._shape], self._dtype, "buffer"
        )
        # The number of values ever added.
        self._head = tf.Variable(0, dtype=tf.int64, name="head")

    @property
    def length(self) -> tf.Tensor:
        """The number of values held, int32."""
        return tf.cast(tf.minimum(self._head, self._max_len), tf.int32)

    @property
    def data(self) -> tf.Tensor:
        """The values held, `[length, ...]`, in the order of their slots."""
        return self._rows()[: self.length]

    def add(self, value: Any) -> None:
        """Appends one value, dropping the oldest if the deque is full."""
        value = tf.convert_to_tensor(value, self._dtype)
        self.extend(value[tf.newaxis])

    def extend(self, value: Any, where: tf.Tensor | None = None) -> None:
        """Appends the rows of `value`, `[N, ...]`, in order.

        Args:
          value: The rows to append.
          where: bool `[N]`; rows with False are skipped. None appends all of them.
        """
        values = tf.convert_to_tensor(value, self._dtype)
        if where is None:
            where = tf.ones(tf.shape(values)[:1], tf.bool)

        if context.in_xla_graph():
            self._extend_at_once(values, where)
            return

        def append() -> tf.Tensor:
            chosen = tf.cast(where, tf.int64)
            position = self._head + tf.cumsum(chosen, exclusive=True)
            head = self._head.assign_add(tf.reduce_sum(chosen))
            # If more rows are given than fit, the last ones are kept.
            kept = tf.logical_and(where, position >= head - self._max_len)
            slots = tf.where(kept, position % self._max_len, self._max_len)
            rows = stored_values.to_stored(values)
            self._buffer.scatter_update(tf.IndexedSlices(rows, slots))
            return tf.constant(True)

        if accelerators.in_graph():
            append()  # The host would wait for the condition.
            return
        # Most steps end no episode. Then this branch costs one reduction and no write.
        tf.cond(tf.reduce_any(where), append, lambda: tf.constant(False))

    def _extend_at_once(self, values: tf.Tensor, where: tf.Tensor) -> None:
        """Appends rows like `extend`, without a scatter, which XLA runs row by row."""
        chosen = tf.cast(where, tf.int64)
        rank = tf.cumsum(chosen, exclusive=True)
        old_head = self._head.read_value()
        head = old_head + tf.reduce_sum(chosen)
        # The last position below the new head that falls into each slot.
        slots = tf.range(self._max_len + 1, dtype=tf.int64)
        last = head - 1 - (head - 1 - slots) % self._max_len
        taken = where & (rank == (last - old_head)[:, tf.newaxis])
        inner = (..., *[tf.newaxis] * self._shape.rank)
        new = tf.reduce_sum(tf.where(taken[inner], values, 0), axis=1)
        is_new = ((last >= old_head) & (slots < self._max_len))[inner]
        stored_values.assign(self._buffer, tf.where(is_new, new, self._rows()))
        self._head.assign(head)

    def clear(self) -> None:
        """Empties the deque."""
        self._head.assign(0)

    def mean(self) -> tf.Tensor:
        """Returns the mean over the values held, zeros if empty."""
        total = tf.reduce_sum(self._held_or(0), axis=0)
        count = tf.cast(tf.maximum(self.length, 1), self._dtype)
        return total // count if self._dtype.is_integer else total / count

    def max(self) -> tf.Tensor:
        """Returns the maximum of the values held; if empty, the dtype's minimum."""
        return tf.reduce_max(self._held_or(self._dtype.min), axis=0)

    def min(self) -> tf.Tensor:
        """Returns the minimum of the values held; if empty, the dtype's maximum."""
        return tf.reduce_min(self._held_or(self._dtype.max), axis=0)

    def _held_or(self, default: Any) -> tf.Tensor:
        """Returns the buffer, `[max_len + 1, ...]`, with `default` in unused rows."""
        held = tf.range(self._max_len + 1) < self.length
        held = tf.reshape(held, [-1] + [1] * self._shape.rank)
        return tf.where(held, self._rows(), tf.constant(default, self._dtype))

    def _rows(self) -> tf.Tensor:
        """Returns the buffer, `[max_len + 1, ...]`, including the extra row."""
        return stored_values.read(self._buffer, self._dtype)
