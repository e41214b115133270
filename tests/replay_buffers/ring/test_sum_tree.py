import itertools

import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import SumTree


def _tree(values, fanout=4):
    """A tree with `values` for its leaves."""
    tree = SumTree(len(values), fanout)
    _write(tree, np.arange(len(values)), values)
    return tree


def _write(tree, leaves, values, keep=None):
    tree.write(
        tf.constant(leaves, tf.int64),
        tf.constant(values, tf.float64),
        tf.fill([len(leaves)], True) if keep is None else tf.constant(keep),
    )


def _draw(tree, fractions, begin, end):
    leaves, values, total = tree.draw(
        tf.constant(fractions, tf.float64),
        tf.constant(begin, tf.int64),
        tf.constant(end, tf.int64),
    )
    return leaves.numpy(), values.numpy(), float(total)


def _in_range(number, begin, end):
    leaves = np.arange(number)
    if begin < end:
        return (leaves >= begin) & (leaves < end)
    return (leaves >= begin) | (leaves < end)


def _assert_sums(tree):
    """Every value above the leaves is the sum of its children."""
    levels = [level.numpy() for level in tree.variables]
    for children, parents in itertools.pairwise(levels):
        sums = np.reshape(parents, [-1])
        np.testing.assert_allclose(
            sums[: len(children)], np.sum(children, axis=1), rtol=1e-15
        )
        assert not np.any(sums[len(children) :])


def test_a_tree_of_ten_leaves_by_hand():
    tree = _tree(np.arange(1.0, 11.0))
    leaves, sums = (v.numpy() for v in tree.variables)
    np.testing.assert_array_equal(leaves, [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]])
    np.testing.assert_array_equal(sums, [[10, 26, 19, 0]])


@pytest.mark.parametrize(
    ("num_leaves", "fanout", "rows"),
    [(1, 4, [1]), (3, 4, [1]), (4, 4, [2, 1]), (15, 4, [4, 1]), (16, 4, [5, 2, 1])],
)
def test_levels_end_in_one_row(num_leaves, fanout, rows):
    tree = SumTree(num_leaves, fanout)
    assert [v.shape[0] for v in tree.variables] == rows


def test_a_million_leaves_are_five_levels():
    assert len(SumTree(1_000_000).variables) == 5


def test_writes_keep_every_sum_right():
    rng = np.random.default_rng(0)
    tree = _tree(np.ones(70))
    expected = np.ones(70)
    for _ in range(20):
        leaves = rng.choice(70, 9, replace=False)
        values = 10.0 ** rng.uniform(-30, 30, 9)
        expected[leaves] = values
        _write(tree, leaves, values)
    _assert_sums(tree)
    np.testing.assert_array_equal(tree.read(tf.range(70, dtype=tf.int64)), expected)


def test_a_leaf_that_is_given_twice_gets_the_larger_value():
    tree = _tree(np.zeros(9))
    _write(tree, [7, 2, 7, 2, 7, 5], [1.0, 6, 3, 4, 2, 0])
    np.testing.assert_array_equal(
        tree.read(tf.range(9, dtype=tf.int64)), [0, 0, 6, 0, 0, 0, 0, 3, 0]
    )
    _assert_sums(tree)


def test_what_is_not_kept_is_not_written():
    tree = _tree(np.ones(16))
    _write(tree, [3, 5, 3], [7.0, 8, 9], keep=[True, False, False])
    expected = np.ones(16)
    expected[3] = 7
    np.testing.assert_array_equal(tree.read(tf.range(16, dtype=tf.int64)), expected)
    _assert_sums(tree)
    _, _, total = _draw(tree, [0.5], 1, 0)
    assert total == 16 + 6 - 1


@pytest.mark.parametrize(
    ("begin", "end"), [(0, 29), (1, 0), (5, 6), (9, 23), (16, 20), (23, 9), (29, 28)]
)
def test_draws_split_the_range_as_the_running_sum_does(begin, end):
    values = np.random.default_rng(1).integers(0, 5, 30).astype(float)
    values[[5, 29]] = 3
    ring = np.roll(np.arange(30), -begin)[: (end - begin) % 30]
    ends = np.cumsum(values[_in_range(30, begin, end)])  # In the order of the leaves.
    leaves = np.flatnonzero(_in_range(30, begin, end))
    assert set(leaves) == set(ring)
    # From the middle of every unit of the sum, so that no rounding decides.
    fractions = (np.arange(ends[-1]) + 0.5) / ends[-1]
    drawn, drawn_values, total = _draw(_tree(values), fractions, begin, end)
    np.testing.assert_array_equal(
        drawn, leaves[np.searchsorted(ends, fractions * ends[-1], side="right")]
    )
    np.testing.assert_array_equal(drawn_values, values[drawn])
    assert total == ends[-1]


def test_a_single_fraction_gives_a_single_leaf():
    leaf, value, _ = SumTree.draw(
        _tree([0.0, 2, 0]),
        tf.constant(0.7, tf.float64),
        tf.constant(0, tf.int64),
        tf.constant(2, tf.int64),
    )
    assert leaf.shape == value.shape == []
    assert (int(leaf), float(value)) == (1, 2.0)


def test_draws_are_in_proportion_to_the_values():
    rng = np.random.default_rng(2)
    values = rng.uniform(0, 1, 300)
    drawn, _, _ = _draw(_tree(values, 16), rng.uniform(size=40_000), 250, 100)
    within = _in_range(300, 250, 100)
    counts = np.bincount(drawn, minlength=300)
    assert not np.any(counts[~within])
    expected = values[within] / np.sum(values[within]) * 40_000
    chi_square = np.sum((counts[within] - expected) ** 2 / expected)
    # The 0.1 % and 99.9 % points of chi-square with 149 degrees of freedom.
    assert 100.8 < chi_square < 208.2


# The fractions that rounding is most likely to lead astray.
EDGES = [0.0, np.nextafter(0, 1), 1e-17, 0.5, 1 - 2**-53, 1.0]


@pytest.mark.parametrize(("begin", "end"), [(10, 999_990), (999_990, 10)])
def test_among_a_million_only_leaves_in_range_and_above_zero_are_drawn(begin, end):
    rng = np.random.default_rng(3)
    number = 1_000_000
    values = 10.0 ** rng.uniform(-30, 30, number)
    values[rng.uniform(size=number) < 0.5] = 0
    # The largest lie just out of range, the smallest at its ends.
    values[[begin - 1, end]] = 1e300
    values[[begin, end - 1]] = 1e-300
    tree = _tree(values, 16)
    fractions = np.concatenate([EDGES, rng.uniform(size=5000)])
    drawn, drawn_values, total = _draw(tree, fractions, begin, end)
    assert np.all(_in_range(number, begin, end)[drawn])
    assert np.all(drawn_values > 0)
    np.testing.assert_allclose(
        total, np.sum(values[_in_range(number, begin, end)]), rtol=1e-12
    )
    assert drawn[0] == np.flatnonzero(_in_range(number, begin, end) & (values > 0))[0]


def test_sums_recover_from_values_that_drowned_all_others():
    tree = _tree(np.full(1000, 0.1), 16)
    for _ in range(10):
        _write(tree, [123], [1e30])
        _write(tree, [123], [0.1])
    _assert_sums(tree)
    _, _, total = _draw(tree, [0.5], 0, 999)
    np.testing.assert_allclose(total, 99.9, rtol=1e-14)


def test_writing_and_drawing_compile_and_trace_once():
    tree = _tree(np.ones(100), 16)

    @tf.function(jit_compile=True)
    def step(leaves, values, fractions, begin):
        tree.write(leaves, values, tf.fill([3], True))
        return tree.draw(fractions, begin, begin - 30)

    rng = np.random.default_rng(5)
    for i in range(5):
        leaves = rng.choice(100, 3, replace=False)
        values = rng.uniform(0, 9, 3)
        fractions = rng.uniform(size=20)
        compiled = step(
            *map(tf.constant, (leaves, values, fractions)),
            tf.constant(60 + i, tf.int64),
        )
        drawn = _draw(tree, fractions, 60 + i, 30 + i)
        np.testing.assert_array_equal(compiled[0], drawn[0])
        np.testing.assert_allclose(compiled[1], drawn[1], rtol=1e-12)
    assert step.experimental_get_tracing_count() == 1
