"""Retrace: the numbers of rlax's and trfl's tests, and a sum by its definition."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses

# The sequences of rlax's test of Retrace, `[B, T + 1, ...]`, and half of the squares of
# the errors that it expects, `[B, T]`. Their lambda is 0.9.
QS = [
    [[1.1, 2.1], [-1.1, 1.1], [3.1, -3.1], [-1.2, 0.0]],
    [[2.1, 3.1], [9.5, 0.1], [-2.1, -1.1], [0.1, 7.4]],
]
TARGET_QS = [
    [[1.2, 2.2], [-1.2, 0.2], [2.2, -1.2], [-2.25, -6.0]],
    [[4.2, 2.2], [1.2, 1.2], [-1.2, -2.2], [1.5, 1.0]],
]
ACTIONS = [[0, 1, 0, 0], [1, 0, 0, 1]]
REWARDS = [[-1.3, -1.3, 2.3, 42.0], [1.3, 5.3, -3.3, -5.0]]
DISCOUNTS = [[0.0, 0.89, 0.85, 0.99], [0.88, 1.0, 0.83, 0.95]]
POLICY = [
    [[0.5, 0.5], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]],
    [[0.1, 0.9], [1.0, 0.0], [0.3, 0.7], [0.7, 0.3]],
]
BEHAVIOUR = [[0.5, 0.1, 0.9, 0.3], [0.4, 0.6, 1.0, 0.9]]
EXPECTED = [[2.8800001, 3.8934109, 4.5942383], [0.31121615, 20.253206, 0.0031601219]]
# For continuous actions: `[B, T]`, where the last of log_rhos is not used.
VALUES_OF_ACTIONS = [[1.1, 1.1, 3.1], [3.1, 9.5, -2.1]]
NEXT_VALUES_OF_ACTIONS = [[0.2, 2.2, np.nan], [1.2, -1.2, np.nan]]
VALUES = [[-0.08, 0.84000003, -2.625], [1.2, -1.9, 1.3499999]]
LOG_RHOS = [[-0.4054651, 1.0986122, np.nan], [-1.2039728, -1.0986123, np.nan]]


def time_major(values, part=slice(None)):
    values = np.array(values)[:, part]
    dtype = np.int32 if values.dtype.kind == "i" else np.float32
    return np.moveaxis(values, 0, 1).astype(dtype)


def discrete(**changes):
    before, after = slice(None, -1), slice(1, None)
    return {
        "q_tm1": time_major(QS, before),
        "q_t": time_major(TARGET_QS, after),
        "a_tm1": time_major(ACTIONS, before),
        "a_t": time_major(ACTIONS, after),
        "r_t": time_major(REWARDS, before),
        "discount_t": time_major(DISCOUNTS, before),
        "pi_t": time_major(POLICY, after),
        "mu_t": time_major(BEHAVIOUR, after),
        "lambda_": 0.9,
        **changes,
    }


def continuous(**changes):
    return {
        "q_tm1": time_major(VALUES_OF_ACTIONS),
        "q_t": time_major(NEXT_VALUES_OF_ACTIONS),
        "v_t": time_major(VALUES),
        "r_t": time_major(REWARDS, slice(None, -1)),
        "discount_t": time_major(DISCOUNTS, slice(None, -1)),
        "log_rhos": time_major(LOG_RHOS),
        "lambda_": 0.9,
        **changes,
    }


def test_the_numbers_of_rlax_for_discrete_actions():
    errors = losses.retrace(**discrete())
    np.testing.assert_allclose(0.5 * errors**2, time_major(EXPECTED), rtol=1e-5)


@pytest.mark.parametrize(
    ("lambda_", "expected"),
    [
        (0.9, [[2.88, 5.643226, 4.594238], [0.04236919, 20.44066, 0.003160141]]),
        # rlax takes a lambda of 0 for the end of an episode after the second step.
        (
            np.float32([[0.9] * 2, [0] * 2, [0.9] * 2]),
            [[2.88, 1.365213, 4.594238], [0.02448239, 18.605, 0.003160141]],
        ),
    ],
)
def test_the_numbers_of_rlax_for_actions_of_any_kind(lambda_, expected):
    errors = losses.retrace_continuous(**continuous(lambda_=lambda_))
    np.testing.assert_allclose(0.5 * errors**2, time_major(expected), rtol=1e-5)


def test_the_numbers_of_trfl():
    """Of the first sequence of its test: three steps, worked backwards."""
    target = np.zeros(3)
    target[2] = 5.9 + 0.6 * (0.16 * 2 + 0.72 * 8 + 0.12 * 4)
    target[1] = 3.9 + 0.7 * (0.22 * 3 + 0.44 * 5 + 0.34 * 7)
    target[1] += 0.9 * 0.7 * 0.22 / 0.87 * (target[2] - 3)
    target[0] = 1.9 + 0.8 * (0.41 * 7 + 0.28 * 6 + 0.31 * 5)
    target[0] += 0.9 * 0.8 * 0.28 / 0.85 * (target[1] - 6)
    errors = losses.retrace(
        q_tm1=[[2.2, 3.2, 4.2], [7.2, 6.2, 5.2], [3.2, 5.2, 7.2]],
        q_t=[[7.0, 6.0, 5.0], [3.0, 5.0, 7.0], [2.0, 8.0, 4.0]],
        a_tm1=[2, 1, 0],
        a_t=[1, 0, 2],
        r_t=[1.9, 3.9, 5.9],
        discount_t=[0.8, 0.7, 0.6],
        pi_t=[[0.41, 0.28, 0.31], [0.22, 0.44, 0.34], [0.16, 0.72, 0.12]],
        mu_t=[0.85, 0.87, 0.89],
        lambda_=0.9,
    )
    np.testing.assert_allclose(errors, target - [4.2, 6.2, 3.2], rtol=1e-5)


def by_definition(q_tm1, q_t, v_t, r_t, discount_t, log_rhos, lambda_, continues_t):
    """A sum over the steps ahead of each, for one column."""
    coefficients = lambda_ * np.minimum(1, np.exp(log_rhos))
    targets = []
    for s in range(len(r_t)):
        target, worth = r_t[s] + discount_t[s] * v_t[s], 1.0
        for t in range(s + 1, len(r_t)):
            if not continues_t[t - 1]:
                break
            worth *= discount_t[t - 1] * coefficients[t - 1]
            target += worth * (r_t[t] + discount_t[t] * v_t[t] - q_t[t - 1])
        targets.append(target - q_tm1[s])
    return targets


def test_it_equals_the_definition_over_ends_of_episodes():
    rng = np.random.default_rng(0)
    shape = (7, 5)
    names = ("q_tm1", "q_t", "v_t", "r_t", "log_rhos")
    data = {name: rng.normal(size=shape).astype(np.float32) for name in names}
    data["continues_t"] = (rng.random(shape) < 0.7).astype(np.float32)
    terminated = (1 - data["continues_t"]) * (rng.random(shape) < 0.5)
    data["discount_t"] = (0.9 * (1 - terminated)).astype(np.float32)
    errors = losses.retrace_continuous(**data, lambda_=0.8)
    expected = [
        by_definition(**{k: v[:, b] for k, v in data.items()}, lambda_=0.8)
        for b in range(5)
    ]
    np.testing.assert_allclose(errors, np.transpose(expected), rtol=1e-4, atol=1e-5)


def test_discrete_actions_are_a_case_of_actions_of_any_kind():
    data = discrete()
    a_tm1, a_t = data.pop("a_tm1"), data.pop("a_t")
    pi_t, mu_t = data.pop("pi_t"), data.pop("mu_t")
    chosen = np.take_along_axis(pi_t, a_t[..., np.newaxis], -1)[..., 0]
    expected = losses.retrace_continuous(
        q_tm1=losses.action_value(data.pop("q_tm1"), a_tm1),
        v_t=np.sum(pi_t * data["q_t"], axis=-1),
        q_t=losses.action_value(data.pop("q_t"), a_t),
        log_rhos=np.log(chosen / mu_t),
        **data,
    )
    errors = losses.retrace(**discrete())
    np.testing.assert_allclose(errors, expected, rtol=1e-5, atol=1e-6)


def test_a_termination_hides_values_that_are_not_finite():
    data = discrete()
    data["q_t"][0, 0] = np.nan  # The discount is 0 there.
    data["mu_t"][0, 0] = 0.0
    errors = losses.retrace(**data)
    np.testing.assert_allclose(0.5 * errors**2, time_major(EXPECTED), rtol=1e-5)


def test_gradients_flow_into_the_predictions_alone():
    data = {k: tf.constant(v) for k, v in discrete().items()}
    with tf.GradientTape() as tape:
        for name in ("q_tm1", "q_t", "pi_t", "mu_t", "r_t"):
            tape.watch(data[name])
        total = tf.reduce_sum(losses.retrace(**data))
    gradients = tape.gradient(total, data)
    assert [name for name, g in gradients.items() if g is not None] == ["q_tm1"]
    one_hot = np.eye(2)[data["a_tm1"]]
    np.testing.assert_array_equal(gradients["q_tm1"], -one_hot)
