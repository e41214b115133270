"""Random streams: the same seed, the same numbers; other seeds, others."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import seeds


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
        r"draw one with tfrl.utils.seeds.next_seed",
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
