"""A tree of sums in `tf.Variable`s, which draws leaves in proportion to their values.

The tree is wide: every node has `fanout` children, whose values lie side by side in one
row. A million leaves make five levels of fanout 16, where a binary tree has twenty, and
each level adds an operation that has to wait for the one before.

The sums do not drift: a write recomputes the sums above a leaf from their children, in
float64, and never adds a difference. Rounding cannot lead a draw to a leaf of value 0:
at each node, the draw descends only to a child whose value within the range is
positive.
"""

from __future__ import annotations

import tensorflow as tf


class SumTree(tf.Module):
    """Holds `num_leaves` non-negative values in a ring, and the sums above them.

    `write` and `draw` take a batch, cost O(log `num_leaves`) for each entry, and
    compile under XLA.
    """

    def __init__(self, num_leaves: int, fanout: int = 16) -> None:
        """Creates the variables, all zero.

        Args:
          num_leaves: How many values there are.
          fanout: How many children a node has.
        """
        super().__init__()
        self._num_leaves = num_leaves
        self._fanout = fanout
        # Row `g` of level `h` holds the children of node `g` of level `h + 1`. One
        # spare leaf receives the writes that are to have no effect.
        self._levels = []
        rows = num_leaves // fanout + 1
        while True:
            self._levels.append(
                tf.Variable(
                    tf.zeros([rows, fanout], tf.float64), trainable=False, name="sums"
                )
            )
            if rows == 1:
                break
            rows = (rows - 1) // fanout + 1

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        """The levels from the leaves up, float64 `[rows, fanout]`."""
        return tuple(self._levels)

    def read(self, leaves: tf.Tensor) -> tf.Tensor:
        """Returns the values of `leaves`, int64 of any shape, as float64."""
        return tf.gather_nd(self._levels[0], self._place(leaves))

    def write(self, leaves: tf.Tensor, values: tf.Tensor, keep: tf.Tensor) -> tf.Tensor:
        """Sets leaves and recomputes the sums above them.

        Args:
          leaves: The leaves to set, int64 `[N]`. A leaf that is given twice gets the
            larger value, so that the result does not depend on the order of the writes.
          values: float64 `[N]`, none negative.
          keep: bool `[N]`; where False, nothing is written.

        Returns:
          A tensor that becomes available after everything is written.
        """
        leaves = tf.where(keep, leaves, self._num_leaves)
        values = _largest_of_equal(leaves, tf.where(keep, values, 0.0))
        done: tf.Tensor = leaves
        for level in self._levels:
            place = self._place(leaves)
            with tf.control_dependencies([done]):
                write = level.scatter_nd_update(place, values)
            leaves = place[:, 0]
            with tf.control_dependencies([write]):
                values = tf.reduce_sum(tf.gather(level, leaves), axis=1)
            done = values
        return done

    def draw(
        self, fractions: tf.Tensor, begin: tf.Tensor, end: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Finds the leaves where running sums pass fractions of a range's total.

        With uniform fractions, a leaf is drawn with probability value / sum. Leaves of
        value 0 are drawn only if the range has no other leaves.

        Args:
          fractions: float64 `[N]` or `[]`, in [0, 1).
          begin: The first leaf of the range, int64 `[]`.
          end: The leaf after the last one, modulo `num_leaves`, int64 `[]`; less than
            `begin` if the range wraps around to leaf 0. The range must not cover all
            leaves.

        Returns:
          The leaves, int64 `[N]` (or `[]`), their values and the sum over the range.
        """
        bounds = self._bounds(begin, end)
        top = len(self._levels) - 1
        total = tf.reduce_sum(
            self._in_range(top, tf.zeros([1], tf.int64), bounds), axis=1
        )[0]
        rest = tf.reshape(fractions, [-1]) * total
        node = tf.zeros_like(rest, tf.int64)
        value = tf.zeros_like(rest)
        for level in range(top, -1, -1):
            child, value, rest = _pick(self._in_range(level, node, bounds), rest)
            node = node * self._fanout + child
        shape = tf.shape(fractions)
        leaves = tf.ensure_shape(tf.reshape(node, shape), fractions.shape)
        return leaves, tf.reshape(value, shape), total

    def _place(self, nodes: tf.Tensor) -> tf.Tensor:
        """Returns the row and column of nodes of one level, `[..., 2]`."""
        return tf.stack([nodes // self._fanout, nodes % self._fanout], axis=-1)

    def _bounds(self, begin: tf.Tensor, end: tf.Tensor) -> list[_Bounds]:
        """Returns each level's nodes at the range's ends, from the leaves up."""
        none = tf.zeros([2], tf.float64)
        # At the leaves, the ends lie just outside of the range.
        bounds = [(tf.stack([begin - 1, end]), none, begin < end)]
        nodes = tf.stack([begin, end])
        for level in range(len(self._levels) - 1):
            nodes = nodes // self._fanout
            sums = tf.reduce_sum(self._in_range(level, nodes, bounds), axis=1)
            bounds.append((nodes, sums, begin < end))
        return bounds

    def _in_range(
        self, level: int, parents: tf.Tensor, bounds: list[_Bounds]
    ) -> tf.Tensor:
        """Returns the values, within the range, of `parents`' children, `[N, fanout]`.

        A child counts fully or not at all, except at the two ends of the range.
        """
        ends, sums, straight = bounds[level]
        values = tf.gather(self._levels[level], parents)
        nodes = parents[:, None] * self._fanout + tf.range(self._fanout, dtype=tf.int64)
        after, before = nodes > ends[0], nodes < ends[1]
        within = tf.where(straight, after & before, after | before)
        values = tf.where(within, values, 0.0)
        values = tf.where(tf.equal(nodes, ends[1]), sums[1], values)
        return tf.where(tf.equal(nodes, ends[0]), sums[0], values)


# The nodes of a level at both ends of a range, int64 `[2]`; their values within it,
# float64 `[2]`; whether the range does not wrap around at leaf 0.
_Bounds = tuple[tf.Tensor, tf.Tensor, tf.Tensor]


def _pick(values: tf.Tensor, rest: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns where in `values`, `[N, K]`, the running sum passes `rest`, `[N]`.

    The results are the index and the value there, and `rest` minus the sum of the
    values before it.
    """
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
