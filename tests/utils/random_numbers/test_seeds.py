"""Random streams: equal seeds give equal numbers, other seeds give others."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl.utils.random_numbers import seeds


@pytest.fixture(autouse=True)
def _no_global_seed():
    tf.random.set_seed(None)
    yield
    tf.random.set_seed(None)


def draws(generator, num=4):
    return np.stack([seeds.next_seed(generator) for _ in range(num)])


# --- Generators.


def test_same_seed_gives_the_same_stream():
    np.testing.assert_array_equal(
        draws(seeds.make_generator(3)), draws(seeds.make_generator(3))
    )


@pytest.mark.parametrize("other", [0, 4, -3, 2**40])
def test_another_seed_gives_another_stream(other):
    some, others = draws(seeds.make_generator(3)), draws(seeds.make_generator(other))
    assert not np.isin(some, others).any()


def test_no_seed_follows_the_global_one():
    streams = []
    for global_seed in (1, 1, 2):
        tf.random.set_seed(global_seed)
        streams.append(draws(seeds.make_generator()))
    np.testing.assert_array_equal(streams[0], streams[1])
    assert not np.isin(streams[0], streams[2]).any()


def test_generators_after_one_global_seed_differ():
    tf.random.set_seed(1)
    first, second = (draws(seeds.make_generator()) for _ in range(2))
    assert not np.isin(first, second).any()


def test_without_any_seed_every_stream_differs():
    first, second = (draws(seeds.make_generator()) for _ in range(2))
    assert not np.isin(first, second).any()


def test_own_seed_does_not_depend_on_the_global_one():
    streams = []
    for global_seed in (1, 2):
        tf.random.set_seed(global_seed)
        streams.append(draws(seeds.make_generator(3)))
    np.testing.assert_array_equal(*streams)


def test_generator_uses_philox():
    assert seeds.make_generator(0).algorithm == 1


def test_stream_continues_from_a_checkpoint(tmp_path):
    generator, restored = seeds.make_generator(3), seeds.make_generator(4)
    draws(generator)
    path = tf.train.Checkpoint(generator=generator).save(str(tmp_path / "checkpoint"))
    expected = draws(generator)
    tf.train.Checkpoint(generator=restored).restore(path).assert_consumed()
    np.testing.assert_array_equal(draws(restored), expected)


def test_next_seed_advances_inside_a_function():
    generator = seeds.make_generator(3)
    draw = tf.function(lambda: seeds.next_seed(generator))
    numbers = np.stack([draw() for _ in range(4)])
    np.testing.assert_array_equal(numbers, draws(seeds.make_generator(3)))
    assert (numbers.shape, numbers.dtype) == ((4, 2), np.int64)
    assert len(np.unique(numbers)) == 8
    assert draw.experimental_get_tracing_count() == 1


# --- Seeds.


def test_number_becomes_a_pair():
    np.testing.assert_array_equal(seeds.as_seed(7), [7, 0])
    np.testing.assert_array_equal(seeds.as_seed(2**40), [2**40, 0])
    np.testing.assert_array_equal(seeds.as_seed(tf.constant(7)), [7, 0])


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_pair_stays_as_it_is(dtype):
    seed = tf.constant([3, 4], dtype)
    assert seeds.as_seed(seed) is seed


@pytest.mark.parametrize(
    "seed", [1.5, [1, 2, 3], [[1, 2]], [1], "a", tf.constant([1, 2], tf.uint8)]
)
def test_wrong_seeds(seed):
    with pytest.raises(
        ValueError,
        match=r"seed: expected an integer or an integer tensor of shape \[2\], got .*"
        r"draw one with tfrl.utils.random_numbers.seeds.next_seed",
    ):
        seeds.as_seed(seed)


def test_split_is_a_function_of_the_seed():
    for seed in (5, tf.constant(5), tf.constant([5, 0])):
        np.testing.assert_array_equal(seeds.split_seed(seed, 3), seeds.split_seed(5, 3))
    assert not np.isin(seeds.split_seed(5, 3), seeds.split_seed(6, 3)).any()


def test_split_seeds_are_independent_of_each_other_and_of_their_parent():
    parts = seeds.split_seed(5, 3)
    assert len(parts) == 3
    assert all(part.shape == [2] for part in parts)
    streams = [seeds.uniform(s, [4000]) for s in (seeds.as_seed(5), *parts)]
    correlations = np.corrcoef(streams)
    np.testing.assert_allclose(correlations, np.eye(4), atol=0.06)


# --- Uniform numbers.


@pytest.mark.parametrize("compiled", [False, True])
def test_uniform_is_a_function_of_the_seed(compiled):
    draw = tf.function(seeds.uniform, jit_compile=True) if compiled else seeds.uniform
    seed = tf.constant([1, 2], tf.int64)
    np.testing.assert_array_equal(draw(seed, [8]), draw(seed, [8]))
    assert not np.isin(draw(seed, [8]), draw(seed + 1, [8])).any()


def test_uniform_numbers_of_neighbouring_seeds_have_nothing_in_common():
    pairs = [[7, 0], [8, 0], [7, 1], [0, 7], [-7, 0], [7, -1]]
    streams = [seeds.uniform(tf.constant(pair), [4000]).numpy() for pair in pairs]
    np.testing.assert_allclose(np.corrcoef(streams), np.eye(len(pairs)), atol=0.06)
    # Nor is one the other, shifted.
    for i, some in enumerate(streams):
        for other in streams[i + 1 :]:
            assert np.isin(some[:100], other[:100]).mean() < 0.1


@pytest.mark.slow
def test_first_numbers_of_consecutive_seeds_are_uniform():
    # A loop draws one number from each seed, so these have to be as good.
    first = [seeds.uniform(seeds.as_seed(s), [])[...].numpy() for s in range(1000)]
    counts, _ = np.histogram(first, bins=10, range=(0, 1))
    assert counts.min() > 70
    assert counts.max() < 130
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ({}, 0, 1),
        ({"minval": 0.5}, 0.5, 1),
        ({"maxval": 3.0}, 0, 3),
        ({"minval": -2, "maxval": 2}, -2, 2),
        ({"minval": tf.constant(-2.0), "maxval": tf.constant(2.0)}, -2, 2),
    ],
)
def test_uniform_floats_lie_within_the_bounds(bounds, low, high):
    numbers = seeds.uniform(seeds.as_seed(1), [10000], **bounds).numpy()
    assert numbers.dtype == np.float32
    width = high - low
    assert low <= numbers.min() < low + 0.01 * width
    assert high - 0.01 * width < numbers.max() < high
    np.testing.assert_allclose(numbers.mean(), (low + high) / 2, atol=0.02 * width)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_uniform_integers_leave_out_the_upper_bound(dtype):
    numbers = seeds.uniform(seeds.as_seed(1), [6000], 3, 6, dtype)
    assert numbers.dtype == dtype
    values, counts = np.unique(numbers, return_counts=True)
    np.testing.assert_array_equal(values, [3, 4, 5])
    np.testing.assert_allclose(counts, 2000, atol=150)


# --- Uniform numbers, however they are made: from 64 on they are hashed.

SEED = tf.constant([3, -(2**62)], tf.int64)
DTYPES = [tf.float32, tf.float64, tf.int32, tf.int64]
SHAPES = [[], [0], [5], [64], [65], [7, 30]]


@pytest.mark.parametrize(
    "dtype",
    some_slow(DTYPES, fast=[tf.int32, tf.float32]),
    ids=lambda dtype: dtype.name,
)
def test_uniform_numbers_are_the_same_in_graphs_and_under_xla(dtype):
    def draw(seed):
        return [seeds.uniform(seed, shape, 1, 1000, dtype) for shape in SHAPES]

    eager = draw(SEED)
    for jit_compile in (False, True):
        graph = tf.function(draw, jit_compile=jit_compile, autograph=False)
        for ours, theirs in zip(graph(SEED), eager, strict=True):
            assert ours.dtype == dtype
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_shape_that_is_not_known_gives_the_same_numbers(dtype):
    @tf.function(autograph=False)
    def draw(like):
        return seeds.uniform(SEED, tf.shape(like), 1, 1000, dtype)

    concrete = draw.get_concrete_function(tf.TensorSpec([None, None]))
    for shape in ([3, 2], [0, 1], [40, 30]):
        np.testing.assert_array_equal(
            concrete(tf.zeros(shape)), seeds.uniform(SEED, shape, 1, 1000, dtype)
        )


@pytest.mark.parametrize("known", [True, False])
def test_only_a_size_that_the_graph_does_not_determine_is_looked_at_in_it(known):
    @tf.function(autograph=False)
    def draw(like):
        return seeds.uniform(SEED, [tf.shape(like)[0], 3])

    concrete = draw.get_concrete_function(tf.TensorSpec([2 if known else None, 5]))
    operations = {operation.type for operation in concrete.graph.get_operations()}
    assert operations.isdisjoint({"If", "StatelessIf"}) == known
    np.testing.assert_array_equal(
        concrete(tf.zeros([2, 5])), seeds.uniform(SEED, [2, 3])
    )


@pytest.mark.parametrize("count", [50, 100000])
@pytest.mark.parametrize("change", [[1, 0], [0, 1], [2**32, 0], [0, 2**32], [-6, 0]])
def test_other_seeds_give_other_numbers(change, count):
    some = seeds.uniform(SEED, [count]).numpy()
    others = seeds.uniform(SEED + tf.constant(change, tf.int64), [count]).numpy()
    assert abs(np.corrcoef(some, others)[0, 1]) < 4 / np.sqrt(count)
    # In 2**23 values, so many agree by chance.
    expected = count / 2**23
    assert np.sum(some == others) < expected + 5 * np.sqrt(expected) + 1


def chi_square(counts):
    """How far counts are from equal ones, in standard deviations of its statistic."""
    expected = np.sum(counts) / len(counts)
    statistic = np.sum((counts - expected) ** 2) / expected
    freedom = len(counts) - 1
    return (statistic - freedom) / np.sqrt(2 * freedom)


@pytest.fixture(scope="module")
def many():
    """A hundred thousand hashed floats of each of four seeds."""
    return [
        seeds.uniform(tf.constant([7, i], tf.int64), [100000]).numpy() for i in range(4)
    ]


def test_many_floats_have_the_moments_of_uniform_ones(many):
    for numbers in many:
        assert 0 <= numbers.min() < 1e-3
        assert 1 - 1e-3 < numbers.max() < 1
        np.testing.assert_allclose(numbers.mean(), 1 / 2, atol=4 / np.sqrt(12 * 1e5))
        np.testing.assert_allclose(numbers.var(), 1 / 12, atol=1e-3)
        for lag in (1, 2, 3, 64, 1000):
            correlation = np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]
            assert abs(correlation) < 4.5 / np.sqrt(1e5)


def test_many_floats_are_even_in_each_bit_and_in_pairs(many):
    for numbers in many:
        mantissa = (numbers * 2**23).astype(np.int64)
        ones = (mantissa[:, np.newaxis] >> np.arange(23) & 1).sum(axis=0)
        np.testing.assert_allclose(ones, 5e4, atol=4.5 * np.sqrt(1e5) / 2)
        assert abs(chi_square(np.bincount(mantissa >> 15, minlength=256))) < 5
        assert abs(chi_square(np.bincount(mantissa & 255, minlength=256))) < 5
        top = mantissa >> 19
        assert abs(chi_square(np.bincount(16 * top[:-1] + top[1:], minlength=256))) < 5


def test_many_integers_are_even():
    numbers = seeds.uniform(SEED, [60000], -30, 70, tf.int32).numpy()
    counts = np.bincount(numbers + 30, minlength=100)
    assert len(counts) == 100
    assert abs(chi_square(counts)) < 5


def test_the_same_place_in_the_numbers_of_consecutive_seeds_is_uniform():
    """As a loop over 128 environments draws them."""

    @tf.function(autograph=False)
    def draw(i):
        return seeds.uniform(tf.stack([tf.constant(3, tf.int64), i]), [128])

    numbers = np.stack([draw(tf.constant(i, tf.int64)) for i in range(1000)])
    for place in (0, 1, 127):
        column = numbers[:, place]
        counts, _ = np.histogram(column, bins=20, range=(0, 1))
        assert abs(chi_square(counts)) < 5
        assert abs(np.corrcoef(column[:-1], column[1:])[0, 1]) < 0.13
    assert abs(np.corrcoef(numbers[:, 0], numbers[:, 1])[0, 1]) < 0.13


@pytest.mark.parametrize("jit_compile", [False, True])
def test_uniform_doubles_have_random_low_bits(jit_compile):
    draw = tf.function(seeds.uniform, jit_compile=jit_compile, autograph=False)
    numbers = draw(SEED, [5000], dtype=tf.float64).numpy()
    bits = (numbers * 2**52).astype(np.int64)[:, np.newaxis] >> np.arange(52) & 1
    np.testing.assert_allclose(bits.mean(axis=0), 0.5, atol=0.04)


# --- Normal numbers.


@pytest.mark.parametrize("jit_compile", [False, True])
def test_normal_numbers_have_the_normal_distribution(jit_compile):
    draw = tf.function(seeds.normal, jit_compile=jit_compile, autograph=False)
    numbers = draw(SEED, [100_000]).numpy().astype(np.float64)
    moments = [np.mean(numbers**power) for power in range(1, 5)]
    # Of the mean, the variance, the third and the fourth moment.
    errors = np.sqrt(np.array([1, 2, 15, 96]) / len(numbers))
    assert np.all(np.abs(moments - np.array([0, 1, 0, 3])) < 4 * errors)
    # Kolmogorov and Smirnov's distance; 1.95 is exceeded once in a thousand streams.
    expected = [(1 + math.erf(x / math.sqrt(2))) / 2 for x in np.sort(numbers)]
    distance = np.abs(expected - np.linspace(0, 1, len(numbers))).max()
    assert distance * math.sqrt(len(numbers)) < 1.95


@pytest.mark.parametrize(
    "dtype", [tf.float32, pytest.param(tf.float64, marks=pytest.mark.slow)]
)
def test_normal_numbers_are_the_same_in_graphs_and_under_xla(dtype):
    def draw(seed):
        return [seeds.normal(seed, shape, dtype) for shape in ([], [5], [70_000])]

    eager = draw(SEED)
    for jit_compile in (False, True):
        graph = tf.function(draw, jit_compile=jit_compile, autograph=False)
        for ours, theirs in zip(graph(SEED), eager, strict=True):
            assert ours.dtype == dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    ("dtype", "number", "farthest"),
    [
        (tf.float32, 0.0, -5.294704),
        (tf.float32, 1 - 2.0**-23, 5.294704),
        (tf.float64, 0.0, -8.209536),
        (tf.float64, 1 - 2.0**-52, 8.209536),
    ],
)
def test_farthest_normal_number_is_finite(
    monkeypatch, jit_compile, dtype, number, farthest
):
    """`farthest` is the quantile of 2**-24 or 2**-53, or of 1 minus it."""
    monkeypatch.setattr(
        seeds, "uniform", lambda seed, shape, **_: tf.fill(shape, dtype_of(number))
    )

    def dtype_of(value):
        return tf.constant(value, dtype)

    draw = tf.function(seeds.normal, jit_compile=jit_compile, autograph=False)
    np.testing.assert_allclose(draw(SEED, [3], dtype), [farthest] * 3, rtol=1e-5)


def test_narrow_normal_numbers_are_rounded():
    narrow = seeds.normal(SEED, [50], tf.bfloat16)
    assert narrow.dtype == tf.bfloat16
    wide = seeds.normal(SEED, [50])
    np.testing.assert_array_equal(narrow, tf.cast(wide, tf.bfloat16))
