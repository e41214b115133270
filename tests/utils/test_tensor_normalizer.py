"""Running means and variances, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import tensor_normalizer
from tfrl.utils.tensor_normalizer import (
    EMATensorNormalizer,
    StreamingTensorNormalizer,
)

SPEC = {"a": tf.TensorSpec([2]), "b": (tf.TensorSpec([], tf.int32),)}
KINDS = [EMATensorNormalizer, StreamingTensorNormalizer]


def batches(mean, stddev, num_batches=200, batch_size=8, shape=(), seed=0):
    noise = np.random.default_rng(seed).normal(size=(num_batches, batch_size, *shape))
    return (mean + stddev * noise).astype(np.float32)


def nest(*outer, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "a": tf.constant(rng.normal(3, 2, [*outer, 2]), tf.float32),
        "b": (tf.constant(rng.integers(0, 9, outer), tf.int32),),
    }


# The sums


def test_kahan_summation_keeps_what_rounding_leaves_out():
    total, carry = np.float32(2**24), np.float32(0)
    for _ in range(100):
        total, carry = tensor_normalizer.kahan_summation(total, carry, np.float32(1))
    assert total == 2**24 + 100
    assert np.float32(2**24) + np.float32(1) == 2**24


def test_moments_of_a_union_are_those_of_all_numbers():
    a, b = np.array([1.0, 2.0, 6.0]), np.array([10.0, -2.0])
    moments = [(len(x), x.mean(), ((x - x.mean()) ** 2).sum()) for x in (a, b)]
    n, mean, m2, carry = tensor_normalizer.parallel_variance_calculation(
        *moments[0], *moments[1], 0.0
    )
    union = np.concatenate([a, b])
    np.testing.assert_allclose(
        [n, mean, m2 / n], [5, union.mean(), union.var()], rtol=1e-12
    )
    np.testing.assert_allclose(carry, 0, atol=1e-12)


def test_an_empty_set_adds_nothing():
    moments = tensor_normalizer.parallel_variance_calculation(
        0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 0.0
    )
    assert [float(x) for x in moments] == [2, 3, 4, 0]


# The whole history


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("mean", "stddev"), [(0, 1), (1e4, 1), (1e6, 1), (-1e7, 100)])
def test_moments_in_float32_hold_for_large_means(mean, stddev, jit_compile):
    data = batches(mean, stddev)
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([]))
    update = tf.function(normalizer.update, jit_compile=jit_compile)
    for batch in data:
        update(tf.constant(batch))

    count, average, m2, _ = normalizer.variables
    precise = data.astype(np.float64)
    assert count == data.size
    # The mean is the float32 next to the true one.
    np.testing.assert_allclose(average, precise.mean(), rtol=2**-23, atol=1e-6)
    np.testing.assert_allclose(m2 / data.size, precise.var(), rtol=1e-4)
    assert update.experimental_get_tracing_count() == 1


def test_many_steps_of_one_do_not_wear_the_moments_out():
    data = batches(1000, 1, num_batches=3000, batch_size=1)
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([]))

    @tf.function
    def update_with_all(values):
        for value in values:
            normalizer.update(value)

    update_with_all(data)
    _, average, m2, _ = normalizer.variables
    precise = data.astype(np.float64)
    np.testing.assert_allclose(average, precise.mean(), rtol=2**-23)
    np.testing.assert_allclose(m2 / data.size, precise.var(), rtol=1e-5)


def test_numbers_are_counted_beyond_the_whole_numbers_of_float32():
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([]))
    count = normalizer.variables[0]
    count.assign(2**24)
    normalizer.update(tf.zeros([1]))
    assert count == 2**24 + 1


def test_any_number_of_outer_dimensions_counts():
    data = nest(3, 4)
    normalizer = StreamingTensorNormalizer(SPEC)
    normalizer.update(data)
    count, average, m2, carry = normalizer.variables
    assert count["a"] == 12
    assert carry["b"][0] == 0
    for values, mean, squares in (
        (data["a"], average["a"], m2["a"]),
        (data["b"][0], average["b"][0], m2["b"][0]),
    ):
        array = values.numpy().astype(np.float64)
        np.testing.assert_allclose(mean, array.mean((0, 1)), rtol=1e-6)
        np.testing.assert_allclose(squares / 12, array.var((0, 1)), rtol=1e-5)


def test_one_value_without_outer_dimensions_is_a_value():
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([2]))
    normalizer.update(tf.constant([1.0, 2.0]))
    normalizer.update(tf.constant([3.0, 2.0]))
    np.testing.assert_allclose(normalizer.variables[1], [2, 2], rtol=1e-6)
    np.testing.assert_allclose(normalizer.variables[2], [2, 0], rtol=1e-6)


def test_an_empty_batch_changes_nothing():
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([]))
    normalizer.update(tf.zeros([0]))
    assert np.isfinite(normalizer.normalize(tf.constant([1.0]))).all()
    normalizer.update(tf.constant([1.0, 3.0]))
    normalizer.update(tf.zeros([0]))
    assert [float(v) for v in normalizer.variables] == [2, 2, 2, 0]


def test_reset_forgets_everything():
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([]))
    normalizer.update(tf.constant([100.0, 300.0]))
    normalizer.reset()
    normalizer.update(tf.constant([1.0, 3.0]))
    assert [float(v) for v in normalizer.variables] == [2, 2, 2, 0]


def test_it_tells_its_specs():
    assert StreamingTensorNormalizer(SPEC).tensor_spec == SPEC


def test_history_is_kept_in_float64_for_float64():
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([], tf.float64))
    assert normalizer.variables[1].dtype == tf.float64
    assert normalizer.normalize(tf.zeros([3], tf.float64)).dtype == tf.float64


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_uneven_batches_with_masks_give_the_moments_of_what_counts(jit_compile):
    rng = np.random.default_rng(4)
    spec = {"a": tf.TensorSpec([2]), "b": tf.TensorSpec([])}
    normalizer = StreamingTensorNormalizer(spec)
    update = tf.function(normalizer.update, jit_compile=jit_compile)
    counted = {"a": [], "b": []}
    # Each size is compiled anew.
    for size in (7, 1) if jit_compile else (1, 7, 3, 40):
        data = {
            "a": rng.normal(1e4, [0.5, 3], [size, 2]).astype(np.float32),
            "b": rng.normal(-1e4, 2, size).astype(np.float32),
        }
        mask = rng.random(size) < 0.6
        for name, values in data.items():
            counted[name].append(values[mask].astype(np.float64))
            values[~mask] = np.nan
        update(tf.nest.map_structure(tf.constant, data), mask=tf.constant(mask))

    count, average, m2, _ = normalizer.variables
    for name, parts in counted.items():
        precise = np.concatenate(parts)
        assert count[name] == len(precise)
        np.testing.assert_allclose(average[name], precise.mean(0), rtol=2**-23)
        np.testing.assert_allclose(m2[name] / len(precise), precise.var(0), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_which_nothing_counts_changes_nothing(kind):
    normalizer = kind(tf.TensorSpec([2]))
    normalizer.update(tf.constant([[1.0, 5.0], [3.0, 5.0]]))
    before = [v.numpy() for v in tf.nest.flatten(normalizer.variables)]
    normalizer.update(tf.fill([3, 2], np.nan), mask=tf.zeros([3], tf.bool))
    for old, new in zip(before, tf.nest.flatten(normalizer.variables), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_update_values_pass(kind):
    normalizer = kind(tf.TensorSpec([]))
    values = tf.constant([-2.0, 0.0, 3.0])
    normalized = normalizer.normalize(values, variance_epsilon=0)
    np.testing.assert_array_equal(normalized, values)


# Moving averages


def test_moving_averages_of_mean_and_squared_deviation():
    normalizer = EMATensorNormalizer(tf.TensorSpec([]), norm_update_rate=0.1)
    mean, variance = 0.0, 1.0
    for batch in batches(3, 2, num_batches=5):
        normalizer.update(tf.constant(batch))
        values = batch.astype(np.float64)
        squares = ((values - mean) ** 2).mean()
        mean += 0.1 * (values.mean() - mean)
        variance += 0.1 * (squares - variance)
    np.testing.assert_allclose(normalizer.variables, [mean, variance], rtol=1e-6)


def test_masked_entries_are_left_out_of_moving_averages():
    normalizer = EMATensorNormalizer(tf.TensorSpec([]), norm_update_rate=0.1)
    values = tf.constant([[2.0, np.nan], [4.0, 100.0]])
    mask = tf.constant([[True, False], [True, False]])
    normalizer.update(values, outer_dims=[0, 1], mask=mask)
    # 0 + 0.1 (3 - 0), and 1 + 0.1 (mean of 4 and 16 - 1).
    np.testing.assert_allclose(normalizer.variables, [0.3, 1.9], rtol=1e-6)


@pytest.mark.parametrize(
    "jit_compile", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_moving_averages_reach_a_large_mean_by_small_steps(jit_compile):
    normalizer = EMATensorNormalizer(tf.TensorSpec([]), norm_update_rate=0.001)
    normalizer.variables[0].assign(1e6)
    update = tf.function(normalizer.update, jit_compile=jit_compile)
    for _ in range(500):
        update(tf.fill([4], 1e6 + 10))
    # A step of 0.01 is less than half the distance of floats there.
    expected = 1e6 + 10 * (1 - 0.999**500)
    np.testing.assert_allclose(normalizer.variables[0], expected, atol=0.04)


def test_outer_dimensions_are_averaged_over_if_told():
    normalizer = EMATensorNormalizer(tf.TensorSpec([2]), norm_update_rate=1.0)
    data = tf.constant(batches(0, 1, 3, 4, (2,)))
    normalizer.update(data, outer_dims=[0, 1])
    np.testing.assert_allclose(
        normalizer.variables[0], data.numpy().mean((0, 1)), atol=1e-6
    )


# Normalizing


@pytest.mark.parametrize("kind", KINDS)
def test_normalizing_scales_to_mean_0_and_variance_1(kind):
    arguments = {"norm_update_rate": 1.0} if kind is EMATensorNormalizer else {}
    normalizer = kind(tf.TensorSpec([]), **arguments)
    data = tf.constant([1.0, 3.0])
    normalizer.update(data)
    normalizer.update(data)
    np.testing.assert_allclose(
        normalizer.normalize(data, variance_epsilon=0), [-1, 1], rtol=1e-6
    )
    np.testing.assert_allclose(
        normalizer.normalize(data, variance_epsilon=3.0), [-0.5, 0.5], rtol=1e-6
    )
    np.testing.assert_allclose(
        normalizer.normalize(data, center_mean=False, variance_epsilon=0),
        [1, 3],
        rtol=1e-6,
    )


def test_results_are_clipped_unless_told_not_to():
    normalizer = EMATensorNormalizer(tf.TensorSpec([]))
    values = tf.constant([-100.0, 2.0])
    normalize = normalizer.normalize
    np.testing.assert_allclose(
        normalize(values, variance_epsilon=0), [-5, 2], rtol=1e-6
    )
    np.testing.assert_allclose(
        normalize(values, clip_value=1.0, variance_epsilon=0), [-1, 1], rtol=1e-6
    )
    np.testing.assert_allclose(
        normalize(values, clip_value=0, variance_epsilon=0), [-100, 2], rtol=1e-6
    )


def test_large_means_do_not_cancel_the_digits_of_the_result():
    data = batches(1e5, 0.1, num_batches=1, batch_size=1000)[0]
    normalizer = StreamingTensorNormalizer(tf.TensorSpec([]))
    normalizer.update(tf.constant(data))
    precise = data.astype(np.float64)
    expected = (precise - precise.mean()) / precise.std()
    normalized = normalizer.normalize(tf.constant(data), variance_epsilon=0)
    np.testing.assert_allclose(normalized, expected, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_nests_keep_structure_shapes_and_dtypes(kind):
    normalizer = kind(SPEC)
    data = nest(3)
    normalizer.update(data)
    normalized = normalizer.normalize(data)
    assert type(normalized) is dict
    kinds = [
        tf.nest.map_structure(tf.TensorSpec.from_tensor, nest)
        for nest in (normalized, data)
    ]
    assert str(kinds[0]) == str(kinds[1])
    assert isinstance(normalizer.variables[0]["b"], tuple)


@pytest.mark.parametrize("kind", KINDS)
def test_other_tensors_than_the_specs_are_refused(kind):
    normalizer = kind(SPEC)
    wrong = {**nest(3), "a": tf.zeros([3, 5])}
    for call in (normalizer.update, normalizer.normalize):
        with pytest.raises(ValueError, match=rf"{kind.__name__}: .*tensor_spec") as e:
            call(wrong)
        assert "a: float32 (3, 5) vs. float32 (2,)" in str(e.value)


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_hold_the_statistics(kind, tmp_path):
    normalizer, restored = kind(SPEC), kind(SPEC)
    normalizer.update(nest(4))
    path = tf.train.Checkpoint(normalizer=normalizer).save(str(tmp_path / "ckpt"))
    status = tf.train.Checkpoint(normalizer=restored).restore(path)
    status.assert_existing_objects_matched()
    for each in (normalizer, restored):
        each.update(nest(4, seed=1))
    tf.nest.map_structure(
        np.testing.assert_array_equal,
        normalizer.normalize(nest(5, seed=2)),
        restored.normalize(nest(5, seed=2)),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_updating_and_normalizing_in_a_graph_traces_once(kind):
    normalizer, eager = kind(SPEC), kind(SPEC)

    @tf.function
    def step(data):
        normalizer.update(data)
        return normalizer.normalize(data)

    for seed in range(3):
        data = nest(4, seed=seed)
        result = step(data)
        eager.update(data)
    tf.nest.map_structure(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5),
        result,
        eager.normalize(data),
    )
    assert step.experimental_get_tracing_count() == 1
