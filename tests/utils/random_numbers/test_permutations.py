"""Permutations: bijections, as random as NumPy's, the same in every kind of program."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import vectorized_map_converters
from tfrl.utils.random_numbers import permutations

NUMBER = 400


def draw(seed, number, length):
    seed = tf.constant([seed, 3], tf.int64)
    return permutations.permutations(seed, number, length).numpy()


# Primes, squares, powers of two, lopsided numbers, and one that sorting alone can do.
@pytest.mark.parametrize(
    "length", [1, 2, 7, 12, 64, 80, 97, 128, 1000, 1018, 2047, 4096, 10_000, 32_768]
)
def test_every_number_occurs_once_in_each_permutation(length):
    found = draw(0, 3, length)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(np.sort(found), np.tile(np.arange(length), (3, 1)))


def test_permutations_of_a_seed_and_of_seeds_differ():
    first, second = draw(0, 3, 64), draw(1, 3, 64)
    rows = {tuple(row) for row in [*first, *second]}
    assert len(rows) == 6
    np.testing.assert_array_equal(draw(0, 3, 64), first)


@pytest.mark.parametrize("length", [128, 1000, 2048])
def test_the_statistics_are_those_of_uniform_permutations(length):
    found = draw(5, NUMBER, length)
    # The correlation of a random permutation with the ranks has this deviation.
    centred = (found - found.mean()) / found.std()
    ranks = np.arange(length)
    correlations = centred @ ((ranks - ranks.mean()) / ranks.std()) / length
    spread = correlations.std() * np.sqrt(length - 1)
    assert 0.88 < spread < 1.12  # Three standard errors of 400 correlations.
    assert abs(correlations.mean() * np.sqrt(length - 1)) < 0.15
    # How many frames of each eighth of a rollout are in each of four minibatches.
    eighth = np.arange(length) * 8 // length
    minibatch = found * 4 // length
    table = np.zeros((NUMBER, 8, 4))
    for row, counts in zip(minibatch, table, strict=True):
        np.add.at(counts, (eighth, row), 1)
    expected = length / 32
    chi2 = ((table - expected) ** 2 / expected).sum(axis=(1, 2))
    per_degree = chi2 / (7 * 3) * (length - 1) / length
    assert 0.93 < per_degree.mean() < 1.07
    # Neighbours that stay neighbours: two are expected.
    neighbours = (np.abs(np.diff(found, axis=1)) == 1).sum(axis=1)
    assert 1.7 < neighbours.mean() < 2.3
    # Each position holds each number equally often: first and last ones.
    for position in (0, -1):
        assert abs(found[:, position].mean() / (length - 1) - 0.5) < 0.05


@pytest.mark.parametrize("length", [13, 128])
def test_plain_compiled_and_vectorized_programs_agree(length):
    inputs = tf.constant([[4, -9], [5, 7]], tf.int64)

    def one(seed):
        return permutations.permutations(seed, 2, length)

    @tf.function(autograph=False)
    def many(given):
        with vectorized_map_converters.conversions():
            return tf.vectorized_map(one, given, fallback_to_while_loop=False)

    expected = [one(seed).numpy() for seed in inputs]
    compiled = tf.function(one, autograph=False, jit_compile=True)
    np.testing.assert_array_equal(compiled(inputs[0]), expected[0])
    np.testing.assert_array_equal(many(inputs), expected)


@pytest.mark.parametrize(("number", "length"), [(0, 4), (4, 0)])
def test_numbers_below_one_are_an_error(number, length):
    with pytest.raises(ValueError, match="expected an integer of at least 1, got 0"):
        draw(0, number, length)


def test_the_rounds_are_a_loop():
    trace = tf.function(lambda seed: permutations.permutations(seed, 4, 1024))
    graph = trace.get_concrete_function(tf.TensorSpec([2], tf.int64)).graph
    nodes = graph.as_graph_def().node
    inner = graph.as_graph_def().library.function
    assert [node.op for node in nodes].count("StatelessWhile") == 1
    body = max(([node.op for node in f.node_def] for f in inner), key=len)
    assert body.count("BitwiseXor") == 2 * 3  # Two rounds of one hash each.
