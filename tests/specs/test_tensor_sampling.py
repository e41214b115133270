from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs.array_spec import ArraySpec
from tfrl.specs.bounded_tensor_spec import BoundedTensorSpec
from tfrl.specs.tensor_sampling import (
    sample_bounded_spec,
    sample_spec_nest,
    zero_spec_nest,
)

INTEGERS = (
    tf.int8,
    tf.uint8,
    tf.int16,
    tf.uint16,
    tf.int32,
    tf.uint32,
    tf.int64,
    tf.uint64,
)
FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_include_both_bounds(dtype):
    spec = BoundedTensorSpec((300,), dtype, 1, 3)
    sample = sample_bounded_spec(spec, seed=0)
    assert sample.dtype == dtype
    assert set(sample.numpy().tolist()) == {1, 2, 3}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_reach_the_ends_of_the_dtype(dtype):
    top, bottom = int(dtype.max), int(dtype.min)
    high = sample_bounded_spec(BoundedTensorSpec((100,), dtype, top - 1, top), seed=0)
    low = sample_bounded_spec(
        BoundedTensorSpec((100,), dtype, bottom, bottom + 1), seed=0
    )
    assert set(high.numpy().tolist()) == {top - 1, top}
    assert set(low.numpy().tolist()) == {bottom, bottom + 1}


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, tf.bool])
def test_whole_range_spreads_and_stays_finite(dtype):
    sample = sample_spec_nest(tf.TensorSpec((1000,), dtype), seed=0)
    assert sample.dtype == dtype
    values = sample.numpy().astype(np.float64)
    assert np.all(np.isfinite(values))
    middle = 0.5 if dtype == tf.bool else float(dtype.max) / 2 + float(dtype.min) / 2
    assert 0.45 < np.mean(values > middle) < 0.55


def test_a_random_state_gives_one_seed_after_another():
    spec = (tf.TensorSpec((20,), tf.int64), tf.TensorSpec((20,), tf.int64))
    rng, same = np.random.RandomState(3), np.random.RandomState(3)
    first, second = sample_spec_nest(spec, rng), sample_spec_nest(spec, rng)
    again = sample_spec_nest(spec, same)
    np.testing.assert_array_equal(first, again)
    assert len({tuple(x.numpy()) for x in (*first, *second)}) == 4


@pytest.mark.parametrize("dtype", [tf.uint8, tf.int32, tf.int64, tf.float32])
def test_bounds_of_each_element_hold(dtype):
    spec = BoundedTensorSpec((3,), dtype, [0, 5, 200], [1, 7, 203])
    samples = sample_bounded_spec(spec, seed=0, outer_dims=(300,)).numpy()
    assert np.all(samples >= spec.minimum)
    assert np.all(samples <= spec.maximum)
    if dtype != tf.float32:
        values = [set(column.tolist()) for column in samples.T]
        assert values == [{0, 1}, {5, 6, 7}, {200, 201, 202, 203}]


def test_integers_of_different_ranges_are_uniform():
    spec = BoundedTensorSpec((2,), tf.int64, [-3, 10], [-1, 13])
    samples = sample_bounded_spec(spec, seed=1, outer_dims=(6000,)).numpy()
    _, first = np.unique(samples[:, 0], return_counts=True)
    _, second = np.unique(samples[:, 1], return_counts=True)
    # Within five standard deviations of the multinomial.
    np.testing.assert_allclose(first, 2000, atol=5 * np.sqrt(6000 * 2 / 9))
    np.testing.assert_allclose(second, 1500, atol=5 * np.sqrt(6000 * 3 / 16))


def test_one_element_may_fill_64_bits_beside_a_narrow_one():
    limits = np.iinfo(np.int64)
    spec = BoundedTensorSpec((2,), tf.int64, [limits.min, -1], [limits.max, 1])
    samples = sample_bounded_spec(spec, seed=0, outer_dims=(100,)).numpy()
    assert set(samples[:, 1].tolist()) == {-1, 0, 1}
    assert samples[:, 0].min() < -(2**61)
    assert samples[:, 0].max() > 2**61


def test_float_samples_are_uniform_within_bounds():
    spec = BoundedTensorSpec((2,), tf.float32, [-2, 0], [2, 1])
    samples = sample_bounded_spec(spec, seed=0, outer_dims=(4000,)).numpy()
    np.testing.assert_allclose(samples.mean(0), [0, 0.5], atol=0.1)
    np.testing.assert_allclose(samples.var(0), [16 / 12, 1 / 12], rtol=0.1)
    assert np.all((samples >= spec.minimum) & (samples <= spec.maximum))


def test_equal_bounds_give_that_number():
    spec = BoundedTensorSpec((2,), tf.float32, [3, 4], [3, 4])
    np.testing.assert_array_equal(sample_bounded_spec(spec), [3, 4])
    spec = BoundedTensorSpec((2,), tf.int32, 7, 7)
    np.testing.assert_array_equal(sample_bounded_spec(spec), [7, 7])


def test_equal_seeds_give_equal_samples():
    spec = {"a": BoundedTensorSpec((2,), tf.float32, 0, 1), "b": tf.TensorSpec((3,))}
    first, second = sample_spec_nest(spec, seed=5), sample_spec_nest(spec, seed=5)
    other = sample_spec_nest(spec, seed=6)
    for key in spec:
        np.testing.assert_array_equal(first[key], second[key])
        assert not np.array_equal(first[key], other[key])


def test_tensors_of_a_nest_are_independent():
    spec = BoundedTensorSpec((4,), tf.float32, 0, 1)
    first, second = sample_spec_nest([spec, spec], seed=0)
    assert not np.array_equal(first, second)


def test_without_a_seed_samples_follow_the_global_seed():
    spec = BoundedTensorSpec((4,), tf.float32, 0, 1)
    tf.random.set_seed(3)
    first, second = sample_bounded_spec(spec), sample_bounded_spec(spec)
    tf.random.set_seed(3)
    again = sample_bounded_spec(spec)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_graph_and_eager_samples_agree_and_trace_once():
    spec = {
        "a": BoundedTensorSpec((2,), tf.float32, -1, 1),
        "b": BoundedTensorSpec((2,), tf.int64, [0, 1], [3, 5]),
        "c": BoundedTensorSpec((), tf.uint8),
    }

    @tf.function
    def sample(seed, batch_size):
        return sample_spec_nest(spec, seed, outer_dims=(batch_size, 2))

    for value in (1, 2):
        seed = tf.constant([value, 3], tf.int64)
        graph = sample(seed, tf.constant(4))
        eager = sample_spec_nest(spec, seed, outer_dims=[4, 2])
        for key in spec:
            np.testing.assert_array_equal(graph[key], eager[key])
    assert sample.experimental_get_tracing_count() == 1


def test_samples_compile():
    spec = [
        BoundedTensorSpec((2,), tf.float32, -1, 1),
        BoundedTensorSpec((2,), tf.int64, [0, 1], [3, 5]),
        BoundedTensorSpec((), tf.int64),
    ]
    compiled = tf.function(
        lambda seed: sample_spec_nest(spec, seed, (3,)), jit_compile=True
    )
    for leaf, sample in zip(spec, compiled(tf.constant([1, 2])), strict=True):
        assert sample.shape == (3, *leaf.shape)
        assert np.all((sample >= leaf.minimum) & (sample <= leaf.maximum))


@pytest.mark.parametrize(
    "outer_dims",
    [(2, 3), [2, 3], tf.constant([2, 3]), tf.TensorShape([2, 3]), np.array([2, 3])],
)
def test_outer_dims_may_be_anything_like_a_shape(outer_dims):
    spec = BoundedTensorSpec((4,), tf.float32, 0, 1)
    assert sample_bounded_spec(spec, outer_dims=outer_dims).shape == (2, 3, 4)
    assert zero_spec_nest(spec, outer_dims=outer_dims).shape == (2, 3, 4)


def test_empty_bounds_give_empty_samples():
    for dtype in (tf.int32, tf.float32):
        spec = BoundedTensorSpec((0,), dtype, np.zeros(0), np.ones(0))
        assert sample_bounded_spec(spec, outer_dims=(2,)).shape == (2, 0)


def test_unknown_dimensions_are_named():
    spec = BoundedTensorSpec((None, 4), tf.float32, 0, 1)
    with pytest.raises(ValueError, match=r"spec: got shape \(None, 4\).* outer_dims"):
        sample_bounded_spec(spec)


def test_nests_keep_their_structure():
    Pair = namedtuple("Pair", "left right")
    spec = Pair({"x": tf.TensorSpec((2,), tf.int32)}, [(), tf.TensorSpec((), tf.bool)])
    for made in (sample_spec_nest(spec), zero_spec_nest(spec)):
        tf.nest.assert_same_structure(made, spec)
        assert isinstance(made, Pair)


def test_minimum_and_maximum_restrict_numbers():
    spec = {
        "free": tf.TensorSpec((100,), tf.float32),
        "bounded": BoundedTensorSpec((100,), tf.int32, 0, [50] * 99 + [2]),
        "flag": tf.TensorSpec((100,), tf.bool),
    }
    sample = sample_spec_nest(spec, seed=0, minimum=-1, maximum=3)
    assert np.all(np.abs(sample["free"] - 1) <= 2)
    assert set(sample["bounded"].numpy().tolist()) == {0, 1, 2, 3}
    assert sample["bounded"][-1] <= 2
    assert set(sample["flag"].numpy().tolist()) == {True, False}


def test_strings_are_small_numbers():
    sample = sample_spec_nest(tf.TensorSpec((50,), tf.string), seed=0)
    assert {int(text) for text in sample.numpy()} <= set(range(11))


def test_booleans_honour_bounds():
    spec = BoundedTensorSpec((20,), tf.bool, True, True)
    assert np.all(sample_bounded_spec(spec))


@pytest.mark.parametrize("dtype", [tf.float32, tf.string])
def test_sparse_specs_give_sparse_tensors(dtype):
    spec = tf.SparseTensorSpec((4, 5), dtype)
    sample = sample_spec_nest(spec, seed=0, outer_dims=(2,))
    assert sample.dtype == dtype
    assert sample.shape == (2, 4, 5)
    indices = [tuple(index) for index in sample.indices.numpy()]
    assert indices == sorted(set(indices))
    assert 0 < len(indices) <= 7
    assert tf.sparse.to_dense(sample).shape == (2, 4, 5)


def test_sparse_specs_may_be_empty():
    sample = sample_spec_nest(tf.SparseTensorSpec((0, 5), tf.float32))
    assert sample.shape == (0, 5)


def test_sparse_specs_need_static_outer_dims():
    @tf.function
    def sample(size):
        return sample_spec_nest(tf.SparseTensorSpec((4,)), outer_dims=(size,)).values

    with pytest.raises(NotImplementedError, match="expected statically known"):
        sample(tf.constant(2))


def test_unsupported_specs_are_named():
    with pytest.raises(TypeError, match=r"structure: spec type not supported: Array"):
        sample_spec_nest([ArraySpec((), np.int32)])
    with pytest.raises(NotImplementedError, match="specs: spec type not supported"):
        zero_spec_nest(tf.SparseTensorSpec((2,)))


def test_zeros():
    spec = {
        "a": BoundedTensorSpec((2,), tf.uint8, 1, 5),
        "b": tf.TensorSpec((), tf.string),
        "c": tf.TensorSpec((), tf.bool),
    }
    zeros = zero_spec_nest(spec, outer_dims=[3])
    np.testing.assert_array_equal(zeros["a"], np.zeros((3, 2), np.uint8))
    assert zeros["a"].dtype == tf.uint8
    assert zeros["b"].numpy().tolist() == [b""] * 3
    assert zeros["c"].numpy().tolist() == [False] * 3
    assert zero_spec_nest(()) == ()


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_floats_are_the_same_compiled_and_those_of_tensorflow(dtype):
    spec = BoundedTensorSpec((3,), dtype, -1, 3)

    def sample(seed):
        return sample_bounded_spec(spec, seed, outer_dims=(5,))

    seed = tf.constant([1, 2])
    unit = tf.random.stateless_uniform((5, 3), seed, dtype=dtype, alg="philox")
    np.testing.assert_allclose(sample(seed), -(1 - unit) + 3 * unit, rtol=1e-6)
    compiled = tf.function(sample, jit_compile=True)(seed)
    np.testing.assert_allclose(compiled, sample(seed), rtol=1e-6)
