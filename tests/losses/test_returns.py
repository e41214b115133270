"""Returns and advantages: worked by hand, and against plain loops.

The loops follow the definitions step by step; nothing of the module's own recurrence
is in them.
"""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses

NUM_STEPS, BATCH = 7, 5


@pytest.fixture
def data():
    """Random `[T, B]` sequences in which episodes end by both ways."""
    rng = np.random.default_rng(0)
    shape = (NUM_STEPS, BATCH)
    continues = (rng.random(shape) < 0.7).astype(np.float32)
    terminated = (1 - continues) * (rng.random(shape) < 0.5)
    return {
        "r_t": rng.normal(size=shape).astype(np.float32),
        "discount_t": (0.9 * (1 - terminated)).astype(np.float32),
        "v_t": rng.normal(size=shape).astype(np.float32),
        "continues_t": continues,
    }


def loop_n_step(t, n, r_t, discount_t, v_t, continues_t):
    """The n-step return of step t, for one column, by its definition."""
    total, worth = 0.0, 1.0
    for k in range(n):
        total += worth * r_t[t + k]
        worth *= discount_t[t + k]
        if k == n - 1 or t + k == len(r_t) - 1 or not continues_t[t + k]:
            return total + worth * v_t[t + k]
    raise AssertionError


def columns(data):
    return [{k: v[:, b] for k, v in data.items()} for b in range(BATCH)]


def test_discounted_returns_by_hand():
    returns = losses.discounted_returns([1.0, 2.0, 4.0], [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(returns, [1 + 1 + 1, 2 + 2, 4])


def test_final_value_is_bootstrapped():
    returns = losses.discounted_returns([1.0, 2.0, 4.0], [0.5, 0.5, 0.5], 8.0)
    np.testing.assert_array_equal(returns, [4, 6, 8])


def test_zero_discount_separates_episodes():
    returns = losses.discounted_returns([1.0, 2.0, 4.0], [1.0, 0.0, 1.0], 8.0)
    np.testing.assert_array_equal(returns, [3, 2, 12])


def test_discounted_returns_of_a_batch_equal_a_loop(data):
    v_final = data["v_t"][-1]
    following, expected = v_final, []
    for r, d in zip(data["r_t"][::-1], data["discount_t"][::-1], strict=True):
        following = r + d * following
        expected.insert(0, following)
    returns = losses.discounted_returns(data["r_t"], data["discount_t"], v_final)
    np.testing.assert_allclose(returns, expected, rtol=1e-5, atol=1e-6)
    first = losses.discounted_return(data["r_t"], data["discount_t"], v_final)
    np.testing.assert_allclose(first, expected[0], rtol=1e-5, atol=1e-6)


def test_long_sequences_stay_exact():
    # The sum of 0.99^k over 5000 steps, in closed form.
    returns = losses.discounted_returns(tf.ones([5000]), tf.fill([5000], 0.99))
    steps_left = np.arange(5000, 0, -1)
    np.testing.assert_allclose(returns, (1 - 0.99**steps_left) / 0.01, rtol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, NUM_STEPS, NUM_STEPS + 2])
def test_n_step_returns_equal_a_loop(data, n):
    expected = [
        [loop_n_step(t, n, **column) for column in columns(data)]
        for t in range(NUM_STEPS)
    ]
    returns = losses.n_step_returns(
        data["r_t"], data["discount_t"], data["v_t"], n, data["continues_t"]
    )
    np.testing.assert_allclose(returns, expected, rtol=1e-5, atol=1e-6)


def test_gae_by_hand():
    # delta = r + d v' - v = [1+.5*4-2, 1+.5*6-4, 1+.5*8-6] = [1, 0, -1].
    advantages = losses.generalized_advantage_estimation(
        [2.0, 4.0, 6.0], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5], [4.0, 6.0, 8.0], lambda_=0.5
    )
    np.testing.assert_array_equal(advantages, [1 + 0.25 * -0.25, 0 - 0.25, -1])


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_gae_is_a_mixture_of_n_step_returns_less_the_value(data, lambda_):
    # Where an episode goes on, the state reached is the one that is left next.
    v_tm1 = np.random.default_rng(1).normal(size=(NUM_STEPS, BATCH)).astype(np.float32)
    follows = np.concatenate([v_tm1[1:], data["v_t"][-1:]])
    data["v_t"] = np.where(data["continues_t"] == 1, follows, data["v_t"])
    advantages = losses.generalized_advantage_estimation(v_tm1, **data, lambda_=lambda_)
    expected = mixtures_of_n_step_returns(data, lambda_)
    np.testing.assert_allclose(advantages + v_tm1, expected, rtol=1e-4, atol=1e-5)


def mixtures_of_n_step_returns(data, lambda_):
    """The lambda return of each step, by its definition."""

    def mixture(t, column):
        # The n-step returns weigh (1 - l) l^(n-1); the longest takes what is left.
        longest = NUM_STEPS - t
        n_steps = [loop_n_step(t, n, **column) for n in range(1, longest + 1)]
        weights = [(1 - lambda_) * lambda_ ** (n - 1) for n in range(1, longest)]
        return np.dot([*weights, 1 - sum(weights)], n_steps)

    return [[mixture(t, c) for c in columns(data)] for t in range(NUM_STEPS)]


def test_lambda_returns_by_hand():
    # The last step has its one-step return; the second is cut off from it.
    returns = losses.lambda_returns(
        [1.0, 2.0, 3.0],
        [0.5, 0.5, 0.5],
        [4.0, 8.0, 16.0],
        lambda_=0.25,
        continues_t=[1, 0, 1],
    )
    np.testing.assert_array_equal(returns, [1 + 0.5 * (0.25 * 6 + 0.75 * 4), 6, 11])


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_lambda_returns_are_mixtures_of_n_step_returns(data, lambda_):
    returns = losses.lambda_returns(**data, lambda_=lambda_)
    expected = mixtures_of_n_step_returns(data, lambda_)
    np.testing.assert_allclose(returns, expected, rtol=1e-4, atol=1e-5)


def test_gae_does_not_cross_a_truncation():
    advantages = losses.generalized_advantage_estimation(
        [0.0, 0.0], [1.0, 99.0], [0.5, 0.5], [10.0, 0.0], 1.0, continues_t=[0, 1]
    )
    np.testing.assert_array_equal(advantages, [6, 99])


def test_returns_are_targets_without_gradient():
    r_t = tf.ones([3])
    with tf.GradientTape() as tape:
        tape.watch(r_t)
        total = sum(
            tf.reduce_sum(x)
            for x in (
                losses.discounted_returns(r_t, r_t, 1.0),
                losses.discounted_return(r_t, r_t),
                losses.n_step_returns(r_t, r_t, r_t, 2),
                losses.lambda_returns(r_t, r_t, r_t),
                losses.generalized_advantage_estimation(r_t, r_t, r_t, r_t),
            )
        )
    assert tape.gradient(total, r_t) is None


def test_unknown_length_gives_the_same_and_traces_once(data):
    def advantages(v_tm1, r_t, discount_t, v_t):
        return losses.generalized_advantage_estimation(v_tm1, r_t, discount_t, v_t, 0.7)

    dynamic = tf.function(advantages, input_signature=[tf.TensorSpec([None, None])] * 4)
    for length in (1, 4, NUM_STEPS):
        cut = [data[k][:length] for k in ("v_t", "r_t", "discount_t", "v_t")]
        np.testing.assert_allclose(dynamic(*cut), advantages(*cut), rtol=1e-6)
    assert dynamic.experimental_get_tracing_count() == 1


def test_shapes_that_differ_are_an_error():
    with pytest.raises(ValueError, match=r"discount_t: got shape \(1,\), expected"):
        losses.discounted_returns([1.0, 2.0], [0.9])
    with pytest.raises(ValueError, match=r"v_final: got shape \(2,\), expected"):
        losses.discounted_returns([1.0, 2.0], [0.9, 0.9], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"continues_t: got shape \(1,\), expected"):
        losses.generalized_advantage_estimation(*[[1.0, 2.0]] * 4, continues_t=[1])


def test_n_must_be_positive():
    with pytest.raises(ValueError, match="n: got 0, expected a positive number"):
        losses.n_step_returns([1.0], [1.0], [1.0], 0)


# rlax's test of n-step returns, `[B, T]`.
REWARDS = [[1.0, 0.0, -1.0, 0.0, 1.0], [0.5, 0.8, -0.7, 0.0, 2.1]]
DISCOUNTS = [[0.5, 0.9, 1.0, 0.5, 0.8], [0.9, 0.5, 0.3, 0.8, 0.7]]
VALUES = [[3.0, 1.0, 5.0, -5.0, 3.0], [-1.7, 1.2, 2.3, 2.2, 2.7]]


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (3, [[2.8, -3.15, 0.7, 1.7, 3.4], [1.2155, 0.714, 0.2576, 3.192, 3.99]]),
        (5, [[1.315, 0.63, 0.7, 1.7, 3.4], [1.33592, 0.9288, 0.2576, 3.192, 3.99]]),
        (7, [[1.315, 0.63, 0.7, 1.7, 3.4], [1.33592, 0.9288, 0.2576, 3.192, 3.99]]),
    ],
)
def test_n_step_returns_of_rlax(n, expected):
    sequences = map(np.transpose, (REWARDS, DISCOUNTS, VALUES))
    returns = losses.n_step_returns(*sequences, n)
    np.testing.assert_allclose(np.transpose(returns), expected, rtol=1e-5)


def test_n_step_returns_with_a_lambda_by_hand():
    returns = losses.n_step_returns(
        [1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [4.0, 8.0, 16.0], 2, lambda_=0.25
    )
    # The next step's one-step return, 6 or 11, has a quarter of the weight.
    expected = [1 + 0.5 * (0.75 * 4 + 0.25 * 6), 2 + 0.5 * (0.75 * 8 + 0.25 * 11), 11]
    np.testing.assert_array_equal(returns, expected)


@pytest.mark.parametrize("n", [1, 3, NUM_STEPS])
def test_n_step_returns_with_a_lambda_mix_those_of_fewer_steps(data, n):
    lambda_ = 0.7

    def mixture(t, column):
        n_steps = [loop_n_step(t, k, **column) for k in range(1, n + 1)]
        weights = [(1 - lambda_) * lambda_ ** (k - 1) for k in range(1, n)]
        return np.dot([*weights, 1 - sum(weights)], n_steps)

    returns = losses.n_step_returns(
        data["r_t"], data["discount_t"], data["v_t"], n, data["continues_t"], lambda_
    )
    steps = range(NUM_STEPS - n + 1)  # Nothing is cut off after these.
    expected = [[mixture(t, column) for column in columns(data)] for t in steps]
    np.testing.assert_allclose(returns[: len(steps)], expected, rtol=1e-4, atol=1e-5)
    if n == NUM_STEPS:
        np.testing.assert_allclose(
            returns, losses.lambda_returns(**data, lambda_=lambda_), rtol=1e-5
        )
