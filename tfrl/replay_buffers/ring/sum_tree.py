"""Sums of blocks in `tf.Variable`s, to draw entries in proportion to their values.

There are two levels: blocks of values that lie side by side, and the sum of each block.
A draw searches the running sum of the blocks, and then the running sum within a block.
A tree with more levels would add fewer numbers. But in a plain graph each operation
takes longer than adding a hundred numbers, and two levels need the fewest operations.

The sums do not drift: a write recomputes the sum of a block from its values, in
float64, and never adds a difference.
"""

from __future__ import annotations

import math

import tensorflow as tf

from tfrl.compilation import accelerators, context

# The number of entries that `best_block` expects to be drawn together.
_DRAWS = 64
# The number of children of a node when XLA descends. XLA takes time in proportion to
# the square of the length of a running sum, and next to none for an operation.
_FANOUT = 16


class SumTree(tf.Module):
    """Holds non-negative values at the positions of a sliding window.

    Positions count from 0 without end; position `p` is kept in leaf `p % num_leaves`. A
    range from which `draw` draws may span `max_span` positions; for this there are up
    to two extra blocks of leaves. Positions that have left the window must be 0 before
    a range begins in their block.

    `write` and `draw` take a batch, and compile under XLA.
    """

    def __init__(self, max_span: int, block: int | None = None) -> None:
        """Creates the variables, all zero.

        Args:
          max_span: The number of positions that a range may span.
          block: The number of values in a block; None takes a number that suits 64
            draws at a time.
        """
        super().__init__()
        self._block = block or best_block(max_span)
        # A range may touch one block more than it could fill. There is one further
        # block, whose first leaf receives the writes that should have no effect.
        self._num_blocks = -(-max_span // self._block) + 1
        rows = self._num_blocks + 1
        self._values = tf.Variable(
            tf.zeros([rows, self._block], tf.float64), trainable=False, name="values"
        )
        self._sums = tf.Variable(
            tf.zeros([rows], tf.float64), trainable=False, name="sums"
        )

    @property
    def num_leaves(self) -> int:
        """The number of positions after which a leaf is used again."""
        return self._num_blocks * self._block

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        """The values `[blocks, block]` and the blocks' sums `[blocks]`, float64."""
        return self._values, self._sums

    def read(self, positions: tf.Tensor) -> tf.Tensor:
        """Returns the values at `positions`, int64 of any shape, as float64."""
        leaves = positions % self.num_leaves
        return tf.gather_nd(
            self._values,
            tf.stack([leaves // self._block, leaves % self._block], axis=-1),
        )

    def write(
        self, positions: tf.Tensor, values: tf.Tensor, keep: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Sets values and recomputes the sums of their blocks.

        Args:
          positions: The positions to write, int64 `[N]`. A position that is given twice
            gets the larger value, so that the result does not depend on the order.
          values: float64 `[N]`, none negative.
          keep: bool `[N]`; where False, nothing is written. None writes everything, and
            no position may be given twice.

        Returns:
          A tensor that becomes available after everything is written.
        """
        leaves = positions % self.num_leaves
        if keep is not None:
            leaves = tf.where(keep, leaves, self.num_leaves)
            values = _largest_of_equal(leaves, tf.where(keep, values, 0.0))
        blocks = leaves // self._block
        place = tf.stack([blocks, leaves % self._block], axis=-1)
        write = self._values.scatter_nd_update(place, values)
        with tf.control_dependencies([write]):
            sums = tf.reduce_sum(tf.gather(self._values, blocks), axis=1)
        write = self._sums.scatter_nd_update(blocks[:, None], sums)
        with tf.control_dependencies([write]):
            return tf.identity(sums)

    def draw(
        self, fractions: tf.Tensor, begin: tf.Tensor, end: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Finds where the running sum of a range passes fractions of its total.

        With uniform fractions, a position is drawn with probability value / sum.
        Positions of value 0 are drawn only if all values in the range are 0. Rounding
        can lead neither to such positions nor out of the range.

        Args:
          fractions: float64 `[N]` or `[]`, in [0, 1).
          begin: The first position of the range, int64 `[]`.
          end: The position after the last one, int64 `[]`, at most `begin + max_span`.

        Returns:
          The positions, int64 `[N]` (or `[]`), their values and the range's total.
        """
        find = self._find_by_steps if context.in_xla_graph() else self._find
        if fractions.shape.rank == 1:
            return find(fractions, begin, end)
        positions, values, total = find(tf.expand_dims(fractions, 0), begin, end)
        return tf.squeeze(positions, 0), tf.squeeze(values, 0), total

    def _find(
        self, fractions: tf.Tensor, begin: tf.Tensor, end: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the results of `draw`, with few operations."""
        first, last, stop = self._ends(begin, end)
        before = tf.cumsum(self._sums_from(first), exclusive=True)
        last_row = tf.gather(self._values, (first + last) % self._num_blocks)
        rest_of_last = tf.gather(tf.cumsum(last_row, exclusive=True), stop)
        total = tf.gather(before, last) + rest_of_last
        # This is less than the total, because float64 rounds a fraction below 1 to less
        # than 1.
        target = fractions * total
        row = tf.reshape(
            _search("UpperBound", tf.expand_dims(before, 0), tf.expand_dims(target, 0))
            - 1,
            [-1],
        )
        block = first + row
        values = tf.gather(self._values, block % self._num_blocks)
        ends = tf.cumsum(values, axis=1)
        rest = target - tf.gather(before, row)
        # Because of rounding, the sum may never pass `rest`. Then the position is the
        # one where the sum reaches its final value.
        at_end = tf.where(tf.equal(row, last), stop - 1, self._block - 1)
        at_end = tf.gather(ends, tf.expand_dims(at_end, 1), batch_dims=1)
        column = tf.reshape(
            tf.minimum(
                _search("UpperBound", ends, tf.expand_dims(rest, 1)),
                _search("LowerBound", ends, at_end),
            ),
            [-1],
        )
        value = tf.gather(values, column, batch_dims=1)
        return block * self._block + column, value, total

    def _find_by_steps(
        self, fractions: tf.Tensor, begin: tf.Tensor, end: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the results of `draw`, with running sums of few numbers."""
        first, last, stop = self._ends(begin, end)
        column = tf.range(self._block, dtype=tf.int64)
        last_row = tf.gather(self._values, (first + last) % self._num_blocks)
        rest_of_last = tf.reduce_sum(tf.where(column < stop, last_row, 0.0))
        row = tf.range(self._num_blocks, dtype=tf.int64)
        sums = tf.where(row < last, self._sums_from(first), 0.0)
        sums = tf.where(tf.equal(row, last), rest_of_last, sums)
        total = tf.reduce_sum(sums)
        row, _, rest = _descend(sums[None], fractions * total)
        block = first + row
        values = tf.gather(self._values, block % self._num_blocks)
        position = block[:, None] * self._block + column
        values = tf.where(position < end, values, 0.0)
        column, value, _ = _descend(values, rest)
        return block * self._block + column, value, total

    def _ends(
        self, begin: tf.Tensor, end: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the first block, the number of full blocks, and the end in the last.

        All are int64 `[]`. The first block is full, because the values before `begin`
        are 0.
        """
        first, last = begin // self._block, end // self._block
        return first, last - first, end - last * self._block

    def _sums_from(self, first: tf.Tensor) -> tf.Tensor:
        """Returns the sums of all blocks in their order from `first` on."""
        number = self._num_blocks
        if accelerators.in_graph():  # A GPU copies the distance to roll to the host.
            index = tf.range(number, dtype=tf.int64) + first % number
            return tf.gather(
                self._sums, tf.where(index < number, index, index - number)
            )
        return tf.roll(self._sums[:number], -(first % number), 0)


def best_block(max_span: int) -> int:
    """Returns the block's length for which the draws add the fewest numbers.

    The draws add `max_span / length` sums of blocks, and `length` values for each draw.
    The result is a power of 2, at least 16.
    """
    return max(16, 2 ** round(math.log2(max_span / _DRAWS) / 2))


def _search(bound: str, numbers: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns the bounds of `values`, `[N, K]`, in the rows of `numbers`, int64."""
    return getattr(tf.raw_ops, bound)(
        sorted_inputs=numbers, values=values, out_type=tf.int64
    )


def _descend(
    values: tf.Tensor, rest: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds where the running sum of each row of `values` passes `rest`, `[N]`.

    Args:
      values: `[N, K]`, or `[1, K]` for one row that all share.
      rest: `[N]`.

    Returns:
      The index and the value there, and `rest` minus the sum of the values before it.
    """
    levels = [values]
    while (size := levels[-1].shape[1]) > _FANOUT:
        rows = -(-size // _FANOUT)
        padded = tf.pad(levels[-1], [[0, 0], [0, rows * _FANOUT - size]])
        levels[-1] = tf.reshape(padded, [-1, rows, _FANOUT])
        levels.append(tf.reduce_sum(levels[-1], axis=2))
    node, value, rest = _pick(levels.pop(), rest)
    for level in reversed(levels):
        if level.shape[0] == 1 and rest.shape[0] != 1:
            children = tf.gather(level[0], node)
        else:
            children = tf.gather(level, node, batch_dims=1)
        child, value, rest = _pick(children, rest)
        node = node * _FANOUT + child
    return node, value, rest


def _pick(values: tf.Tensor, rest: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds where the running sum of each row of `values` passes `rest`, `[N]`.

    The results are as in `_descend`.
    """
    values = tf.broadcast_to(values, [tf.size(rest), values.shape[1]])
    ends = tf.cumsum(values, axis=1)
    positive = values > 0
    passed = positive & (ends > rest[:, None])
    # Because of rounding, the sum may never pass `rest`: then the last positive value
    # is taken. The scores are floats because ArgMax has no GPU kernel for integers.
    rank = tf.range(1, values.shape[1] + 1, dtype=tf.float32)
    size = tf.constant(2 * values.shape[1], tf.float32)
    score = tf.where(passed, size - rank, tf.where(positive, rank - size, -size))
    child = tf.argmax(score, axis=1)
    value = tf.gather(values, child, batch_dims=1)
    start = tf.gather(ends, child, batch_dims=1) - value
    return child, value, tf.maximum(rest - start, 0.0)


def _largest_of_equal(leaves: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns, for each of `leaves`, `[N]`, the largest value given for that leaf."""
    if leaves.shape[0] == 1:
        return values
    # A GPU copies int32 to the host to add or to negate it.
    order = tf.cast(tf.argsort(leaves), tf.int64)
    leaves = tf.gather(leaves, order)
    zero = tf.constant([0], tf.int64)
    new = tf.concat([zero, tf.cast(leaves[1:] != leaves[:-1], tf.int64)], axis=0)
    group = tf.cumsum(new)
    largest = tf.math.unsorted_segment_max(
        tf.gather(values, order), group, tf.size(leaves)
    )
    return tf.gather(largest, tf.gather(group, tf.argsort(order)))
