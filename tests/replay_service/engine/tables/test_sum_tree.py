"""Sum trees: sums, draws in proportion, and weights of all magnitudes."""

import numpy as np
import pytest

from tfrl.replay_service.engine.tables import sum_tree

BELOW_ONE = np.nextafter(1.0, 0.0)


def tree_of(weights, capacity=None):
    weights = np.asarray(weights, float)
    tree = sum_tree.WeightTree(capacity or weights.size)
    tree.set(np.arange(weights.size), weights)
    return tree


@pytest.mark.parametrize("size", [1, 31, 33, 2049, 100_000])
def test_total_is_the_sum_of_the_weights(size):
    weights = np.random.default_rng(0).random(size)
    np.testing.assert_allclose(tree_of(weights).total, weights.sum(), rtol=1e-13)


def test_setting_again_replaces_and_leaves_no_error():
    source = np.random.default_rng(1)
    weights = source.random(5000)
    tree = tree_of(weights)
    for _ in range(50):
        leaves = source.integers(0, 5000, 40)
        values = source.random(40) * 10.0 ** source.integers(-8, 8, 40)
        tree.set(leaves, values)
        for leaf, value in zip(leaves, values, strict=True):
            weights[leaf] = value  # The last one counts.
    np.testing.assert_array_equal(tree.weights(np.arange(5000)), weights)
    assert tree.total == tree_of(weights).total
    tree.set(np.arange(5000), 0.0)
    assert tree.total == 0.0


def test_growing_keeps_the_weights():
    tree = tree_of([1.0, 2.0])
    for capacity in (40, 3000, 90_000):
        tree.grow(capacity)
        tree.set(np.array([capacity - 1]), np.array([0.5]))
    assert tree.total == 4.5
    assert tree.weights(np.array([0, 1, 39, 2999])).tolist() == [1.0, 2.0, 0.5, 0.5]


def test_clear_makes_all_weights_zero():
    tree = tree_of(np.ones(70_000))
    tree.clear()
    assert tree.total == 0.0
    assert not tree.weights(np.arange(70_000)).any()


@pytest.mark.parametrize("size", [5, 3000, 70_000])
def test_draws_are_in_proportion_to_the_weights(size):
    source = np.random.default_rng(2)
    weights = np.where(source.random(size) < 0.5, 0.0, source.random(size))
    tree = tree_of(weights)
    draws = tree.draw(source.random((100_000, tree.depth)))
    # Compared over at most 50 groups of leaves, of which none is too small.
    groups = np.arange(size) * min(size, 50) // size
    expected = np.bincount(groups, weights) / weights.sum() * draws.size
    seen = np.bincount(groups[draws], minlength=expected.size)
    assert not seen[expected == 0.0].any()
    expected, seen = expected[expected > 0], seen[expected > 0]
    statistic = ((seen - expected) ** 2 / expected).sum()
    freedom = expected.size - 1
    assert statistic < freedom + 4.0 * np.sqrt(2.0 * freedom)


@pytest.mark.parametrize(
    "weights",
    [
        [0.0, 0.0, 3.0, 0.0],
        [0.1] * 7 + [0.0],
        [1e-300, 0.0, 1e300, 0.0],
        [3e-308, 0.0, 0.0, 2.5e-308, 0.0],
        [sum_tree.LARGEST_WEIGHT] * 50 + [0.0] * 3,
    ],
)
def test_no_weight_of_zero_is_ever_drawn(weights):
    source = np.random.default_rng(3)
    # Spread, so that whole nodes are empty too.
    spread = np.zeros(70_000)
    spread[np.arange(len(weights)) * 1300] = weights
    for case in (np.asarray(weights), spread):
        tree = tree_of(case)
        uniforms = source.random((2000, tree.depth))
        uniforms[:300][source.random((300, tree.depth)) < 0.5] = 0.0
        uniforms[300:600][source.random((300, tree.depth)) < 0.5] = BELOW_ONE
        uniforms[600], uniforms[601] = 0.0, BELOW_ONE
        assert np.isfinite(tree.total)
        assert (tree.weights(tree.draw(uniforms)) > 0.0).all()


def test_weights_below_the_normal_numbers_count_as_zero():
    tree = tree_of([1e-310, 5e-324])
    assert tree.total == 0.0
