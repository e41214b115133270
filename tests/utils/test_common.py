"""The helpers that users call by `common`'s name."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.utils import common

# --- Names.


def test_everything_listed_exists():
    for name in common.__all__:
        assert callable(getattr(common, name)), name


def test_function_is_that_of_tensorflow():
    square = common.function(lambda x: x * x, autograph=False)
    assert square(tf.constant(3)) == 9
    decorated = common.function(jit_compile=True)(lambda x: x + 1)
    assert decorated(tf.constant(3)) == 4


# --- Element-wise losses.


def test_element_wise_losses():
    x, y = tf.constant([0.0, 0.0, 3.0]), tf.constant([0.5, -2.0, 3.0])
    np.testing.assert_array_equal(common.element_wise_squared_loss(x, y), [0.25, 4, 0])
    np.testing.assert_array_equal(common.element_wise_huber_loss(x, y), [0.125, 1.5, 0])


# --- Periodically.


def calls_of(period, num_calls=7, graph=False):
    """At which calls the body ran."""
    count, ran = tf.Variable(0), tf.Variable(tf.zeros([num_calls], tf.int32))
    periodically = common.Periodically(
        lambda: ran.scatter_nd_update([[count]], [1]), period
    )

    def step():
        periodically()
        count.assign_add(1)

    step = tf.function(step) if graph else step
    for _ in range(num_calls):
        step()
    return [int(i) + 1 for i in np.flatnonzero(ran)]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    ("period", "expected"),
    [(1, [1, 2, 3, 4, 5, 6, 7]), (2, [2, 4, 6]), (3, [3, 6]), (None, [])],
)
@pytest.mark.parametrize("convert", [int, np.int64, tf.constant, tf.Variable])
def test_body_runs_at_multiples_of_the_period(period, expected, convert, graph):
    period = None if period is None else convert(period)
    assert calls_of(period, graph=graph) == expected


def test_period_continues_from_a_checkpoint(tmp_path):
    ran = []
    first = common.Periodically(lambda: ran.append(1), 3)
    first()
    first()
    path = tf.train.Checkpoint(p=first).save(str(tmp_path / "checkpoint"))
    second = common.Periodically(lambda: ran.append(2), 3)
    tf.train.Checkpoint(p=second).restore(path).assert_consumed()
    second()
    assert ran == [2]
    assert [id(v) for v in second.variables()] == [id(second._counter)]


@pytest.mark.parametrize("period", [0, -1, np.int64(0)])
def test_period_has_to_be_positive(period):
    with pytest.raises(
        ValueError, match=f"period: expected a positive number of calls, got {period};"
    ):
        common.Periodically(lambda: None, period)


def test_body_has_to_be_callable():
    with pytest.raises(TypeError, match="body: expected a callable, got int"):
        common.Periodically(3, 1)


# --- Shapes.


def test_transposing_batch_and_time():
    x = tf.reshape(tf.range(12), [2, 3, 2])
    np.testing.assert_array_equal(
        common.transpose_batch_time(x), np.transpose(x, [1, 0, 2])
    )
    np.testing.assert_array_equal(common.transpose_batch_time(x[0, 0]), x[0, 0])


@pytest.mark.parametrize("outer", [[], [3], [3, 2]])
def test_replicate_adds_outer_dimensions(outer):
    result = common.replicate(tf.constant([1, 2]), outer)
    np.testing.assert_array_equal(result, np.broadcast_to([1, 2], [*outer, 2]))


def test_replicate_to_a_shape_known_later():
    replicate = tf.function(lambda n: common.replicate(tf.constant([1, 2]), n))
    assert replicate(tf.constant([4, 3])).shape == [4, 3, 2]


# --- Episodes.


def test_sub_episodes_stop_after_the_first_termination():
    # The figures are TF-Agents'.
    mask = common.get_contiguous_sub_episodes(
        tf.constant([[1.0, 0.5, 0, 1, 0], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]])
    )
    expected = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]
    np.testing.assert_array_equal(mask, expected)
    assert mask.dtype == tf.float32


def test_episode_mask_leaves_out_last_steps():
    step_type = tf.constant([[0, 1, 2], [2, 0, 1]])
    steps = ts.TimeStep(
        step_type,
        reward=tf.zeros([2, 3]),
        discount=tf.ones([2, 3]),
        observation=tf.zeros([2, 3]),
    )
    np.testing.assert_array_equal(
        common.get_episode_mask(steps), [[1, 1, 0], [0, 1, 1]]
    )


# --- States and devices.


@pytest.mark.parametrize("state", [None, (), []])
def test_nothing_is_no_state(state):
    assert not common.safe_has_state(state)


def test_tensors_and_nests_are_states():
    for state in (tf.zeros([0]), [tf.zeros([])], {"a": 1}, 0):
        assert common.safe_has_state(state)
    assert tf.function(lambda s: tf.constant(common.safe_has_state(s)))(tf.zeros([2]))


def test_soft_device_placement_is_set_for_a_while():
    before = tf.config.get_soft_device_placement()
    try:
        tf.config.set_soft_device_placement(False)
        with common.soft_device_placement():
            assert tf.config.get_soft_device_placement()
        assert not tf.config.get_soft_device_placement()
    finally:
        tf.config.set_soft_device_placement(before)


# --- Returns.


def test_returns_end_where_the_discount_is_zero():
    rewards = tf.ones([9])
    discounts = tf.constant([1, 1, 1, 1, 0, 0.9, 0.9, 0.9, 0])
    expected = [5, 4, 3, 2, 1, 3.439, 2.71, 1.9, 1]
    np.testing.assert_allclose(
        common.compute_returns(rewards, discounts), expected, rtol=1e-6
    )


@pytest.mark.parametrize("time_major", [False, True])
def test_returns_of_batches_are_those_of_their_rows(time_major):
    rewards, discounts = np.random.default_rng(0).random([2, 3, 4], np.float32)
    expected = np.zeros([3, 5], np.float32)
    for t in reversed(range(4)):
        expected[:, t] = rewards[:, t] + discounts[:, t] * expected[:, t + 1]
    expected = expected[:, :-1]
    if time_major:
        rewards, discounts, expected = rewards.T, discounts.T, expected.T
    returns = common.compute_returns(rewards, discounts, time_major=time_major)
    np.testing.assert_allclose(returns, expected, rtol=1e-6)


def test_returns_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="shape"):
        common.compute_returns(tf.ones([2, 3]), tf.ones([2, 1]))


# --- Step types in lists.


def test_the_mask_of_a_list_of_step_types_is_made_in_a_function():
    types = [ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST, ts.StepType.MID]
    numbers = [1.0, 1.0, 0.0, 1.0]
    steps = ts.TimeStep(types, numbers, numbers, numbers)
    for mask in (common.get_episode_mask, common.function(common.get_episode_mask)):
        np.testing.assert_array_equal(mask(steps), [1, 1, 0, 1])


# --- Ornstein-Uhlenbeck noise.


def draws(process, num):
    step = tf.function(lambda: process())
    return np.stack([step().numpy() for _ in range(num)])


def test_each_step_follows_the_recursion():
    process = common.OUProcess(tf.constant([4.0, -2.0]), damping=0.5, stddev=0.0)
    np.testing.assert_array_equal(draws(process, 2), [[2.0, -1.0], [1.0, -0.5]])


def test_the_noise_has_the_stationary_statistics_of_an_autoregressive_process():
    # x' = a x + N(0, s^2) has variance s^2 / (1 - a^2) and autocorrelation a.
    damping, stddev = 0.15, 0.2
    process = common.OUProcess(lambda: tf.zeros([2000]), damping, stddev, seed=3)
    x = draws(process, 60)
    keep = 1 - damping
    np.testing.assert_allclose(x[-1].std(), stddev / np.sqrt(1 - keep**2), rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(x[-2], x[-1])[0, 1], keep, atol=0.03)


def test_without_damping_the_variance_grows_with_time():
    x = draws(common.OUProcess(tf.zeros([4000]), 0.0, 1.0, seed=1), 9)
    np.testing.assert_allclose(x[8].std(), 3.0, rtol=0.05)


def test_seeds_reproduce_and_dtypes_are_kept():
    def run(seed):
        return draws(common.OUProcess(tf.zeros([3], tf.float64), seed=seed), 3)

    assert run(1).dtype == np.float64
    np.testing.assert_array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


def test_a_seed_for_a_step_decides_alone():
    one, other = (common.OUProcess(tf.zeros([3]), seed=i) for i in (1, 2))
    seed = tf.constant([5, 6], tf.int64)
    np.testing.assert_array_equal(one(seed), other(seed))


def test_a_checkpoint_holds_the_noise_and_its_stream(tmp_path):
    process = common.ornstein_uhlenbeck_process(tf.zeros([3]), seed=1)
    process()
    path = tf.train.Checkpoint(noise=process).write(str(tmp_path / "noise"))
    expected = draws(process, 3)
    resumed = common.OUProcess(tf.ones([3]), seed=2)
    tf.train.Checkpoint(noise=resumed).read(path).assert_consumed()
    np.testing.assert_array_equal(draws(resumed, 3), expected)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"damping": 1.5}, r"damping: .* got 1\.5"),
        ({"stddev": -0.1}, r"stddev: .* got -0\.1"),
    ],
)
def test_numbers_that_make_no_process_are_errors(kwargs, text):
    with pytest.raises(ValueError, match=text):
        common.OUProcess(tf.zeros([1]), **kwargs)


def test_categorical_logits_mean_the_expectation_over_the_support():
    probabilities = np.array([[[0.2, 0.8], [0.5, 0.5]]], np.float32)
    values = common.convert_q_logits_to_values(
        tf.math.log(probabilities), tf.constant([-1.0, 4.0])
    )
    np.testing.assert_allclose(values, [[3.0, 1.5]], rtol=1e-6)
