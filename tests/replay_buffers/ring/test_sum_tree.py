import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import SumTree


def _tree(values, block=4, begin=0):
    """A tree with `values` at the positions from `begin` on."""
    tree = SumTree(len(values), block)
    _write(tree, begin + np.arange(len(values)), values)
    return tree


def _write(tree, positions, values, keep=None):
    tree.write(
        tf.constant(positions, tf.int64),
        tf.constant(values, tf.float64),
        tf.fill([len(positions)], True) if keep is None else tf.constant(keep),
    )


def _draw(tree, fractions, begin, end):
    positions, values, total = tree.draw(
        tf.constant(fractions, tf.float64),
        tf.constant(begin, tf.int64),
        tf.constant(end, tf.int64),
    )
    return positions.numpy(), values.numpy(), float(total)


# Draws under XLA go another way.
_draw_function = tf.function(
    lambda tree, *arguments: tree.draw(*arguments), jit_compile=True
)


def _draw_compiled(tree, fractions, begin, end):
    positions, values, total = _draw_function(
        tree,
        tf.constant(fractions, tf.float64),
        tf.constant(begin, tf.int64),
        tf.constant(end, tf.int64),
    )
    return positions.numpy(), values.numpy(), float(total)


both_ways = pytest.mark.parametrize("draw", [_draw, _draw_compiled])


def _assert_sums(tree):
    """Every sum is that of its block."""
    values, sums = (variable.numpy() for variable in tree.variables)
    np.testing.assert_allclose(sums, np.sum(values, axis=1), rtol=1e-14)
    assert not np.any(values[-1])


def test_a_tree_of_ten_values_by_hand():
    tree = _tree(np.arange(1.0, 11.0), begin=2)
    values, sums = (v.numpy() for v in tree.variables)
    np.testing.assert_array_equal(
        values,
        [[0, 0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10], [0] * 4, [0] * 4],
    )
    np.testing.assert_array_equal(sums, [3, 18, 34, 0, 0])


@pytest.mark.parametrize("max_span", [1, 3, 4, 5, 16])
def test_a_range_of_any_begin_has_leaves_of_its_own(max_span):
    tree = SumTree(max_span, 4)
    assert tree.num_leaves % 4 == 0
    # The range, and what lies before it in its first block.
    assert max_span + 3 <= tree.num_leaves < max_span + 8


@pytest.mark.parametrize(
    ("max_span", "block"), [(1, 16), (10_000, 16), (100_000, 32), (1_000_000, 128)]
)
def test_larger_trees_have_larger_blocks(max_span, block):
    tree = SumTree(max_span)
    assert tree.variables[0].shape[1] == block


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
    _, _, total = _draw(tree, [0.5], 0, 15)
    assert total == 16 + 6 - 1


RANGES = [
    (0, 30),
    (5, 1),
    (15, 17),
    (1, 30),
    (9, 14),
    (16, 4),
    (35, 29),
    (1003, 30),
]


@pytest.mark.parametrize(
    ("draw", "begin", "number"),
    [
        *((_draw, *given) for given in RANGES),
        (_draw_compiled, *RANGES[-1]),
        *(
            pytest.param(_draw_compiled, *given, marks=pytest.mark.slow)
            for given in RANGES[:-1]
        ),
    ],
)
def test_draws_split_the_range_as_the_running_sum_does(draw, begin, number):
    values = np.random.default_rng(1).integers(0, 5, 30).astype(float)
    values[[0, 29]] = 3
    ends = np.cumsum(values[:number])
    # From the middle of every unit of the sum, so that no rounding decides.
    fractions = (np.arange(ends[-1]) + 0.5) / ends[-1]
    index = np.searchsorted(ends, fractions * ends[-1], side="right")
    drawn, drawn_values, total = draw(
        _tree(values, begin=begin), fractions, begin, begin + number
    )
    np.testing.assert_array_equal(drawn, begin + index)
    np.testing.assert_array_equal(drawn_values, values[index])
    assert total == ends[-1]


@both_ways
def test_a_single_fraction_gives_a_single_position(draw):
    position, value, _ = draw(_tree([0.0, 2, 0]), 0.7, 0, 3)
    assert position.shape == value.shape == ()
    assert (int(position), float(value)) == (1, 2.0)


def test_draws_are_in_proportion_to_the_values():
    rng = np.random.default_rng(2)
    values = rng.uniform(0, 1, 300)
    tree = _tree(values, 16, begin=250)
    drawn, _, _ = _draw(tree, rng.uniform(size=40_000), 250, 400)
    counts = np.bincount(drawn - 250, minlength=300)
    assert not np.any(counts[150:])
    expected = values[:150] / np.sum(values[:150]) * 40_000
    chi_square = np.sum((counts[:150] - expected) ** 2 / expected)
    # The 0.1 % and 99.9 % points of chi-square with 149 degrees of freedom.
    assert 100.8 < chi_square < 208.2


# The fractions that rounding is most likely to lead astray.
EDGES = [0.0, np.nextafter(0, 1), 1e-17, 0.5, 1 - 2**-53]


@pytest.mark.parametrize(
    ("draw", "begin"),
    [
        (_draw, 777_777),
        pytest.param(_draw_compiled, 0, marks=pytest.mark.slow),
        pytest.param(_draw, 0, marks=pytest.mark.slow),
        pytest.param(_draw_compiled, 777_777, marks=pytest.mark.slow),
    ],
)
def test_among_a_million_only_those_in_range_and_above_zero_are_drawn(draw, begin):
    rng = np.random.default_rng(3)
    number = 1_000_000
    values = 10.0 ** rng.uniform(-30, 30, number)
    values[rng.uniform(size=number) < 0.5] = 0
    end = number - 10
    # The largest lie just out of range, the smallest at its ends.
    values[end:] = 1e300
    values[[0, end - 1]] = 1e-300
    tree = _tree(values, None, begin)
    fractions = np.concatenate([EDGES, rng.uniform(size=5000)])
    drawn, drawn_values, total = draw(tree, fractions, begin, begin + end)
    drawn -= begin
    assert np.all((drawn >= 0) & (drawn < end))
    np.testing.assert_array_equal(drawn_values, values[drawn])
    assert np.all(drawn_values > 0)
    np.testing.assert_allclose(total, np.sum(values[:end]), rtol=1e-12)
    assert drawn[0] == 0


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
    def step(positions, values, fractions, begin):
        tree.write(positions, values, tf.fill([3], True))
        return tree.draw(fractions, begin, begin + 30)

    rng = np.random.default_rng(5)
    for i in range(5):
        positions = rng.choice(np.arange(16, 100), 3, replace=False)
        values = rng.uniform(0, 9, 3)
        fractions = rng.uniform(size=20)
        begin = 16 * (1 + i % 4)
        compiled = step(
            *map(tf.constant, (positions, values, fractions)),
            tf.constant(begin, tf.int64),
        )
        drawn = _draw(tree, fractions, begin, begin + 30)
        np.testing.assert_array_equal(compiled[0], drawn[0])
        np.testing.assert_allclose(compiled[1], drawn[1], rtol=1e-12)
    assert step.experimental_get_tracing_count() == 1
