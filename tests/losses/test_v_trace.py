"""V-trace: worked by hand, against a loop by its definition, and on-policy."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses

NUM_STEPS, BATCH = 7, 5


@pytest.fixture(scope="module")
def data():
    """Random `[T, B]` sequences in which episodes end by both ways."""
    rng = np.random.default_rng(0)
    shape = (NUM_STEPS, BATCH)
    continues = (rng.random(shape) < 0.7).astype(np.float32)
    terminated = (1 - continues) * (rng.random(shape) < 0.5)
    return {
        "v_tm1": rng.normal(size=shape).astype(np.float32),
        "r_t": rng.normal(size=shape).astype(np.float32),
        "discount_t": (0.9 * (1 - terminated)).astype(np.float32),
        "v_t": rng.normal(size=shape).astype(np.float32),
        "continues_t": continues,
    }


@pytest.fixture(scope="module")
def consistent(data):
    """The same, but the value reached is the next one within an episode."""
    follows = data["continues_t"][:-1] == 1
    v_t = data["v_t"].copy()
    v_t[:-1] = np.where(follows, data["v_tm1"][1:], v_t[:-1])
    return {**data, "v_t": v_t}


@pytest.fixture(scope="module")
def log_rhos():
    rng = np.random.default_rng(1)
    return rng.normal(size=(NUM_STEPS, BATCH)).astype(np.float32)


def by_definition(column, log_rhos, lambda_, clip_rho, clip_pg_rho):
    """Equation 1 of the paper: a sum over the steps ahead, for one column."""
    rhos = np.exp(log_rhos)
    bar, c = np.minimum(clip_rho, rhos), lambda_ * np.minimum(1.0, rhos)
    v, r, d, reached, goes_on = column.values()
    delta = bar * (r + d * reached - v)
    vs = np.zeros(NUM_STEPS)
    for s in range(NUM_STEPS):
        vs[s], worth = v[s], 1.0
        for t in range(s, NUM_STEPS):
            vs[s] += worth * delta[t]
            worth *= d[t] * c[t]
            if not goes_on[t]:
                break
    ahead = [
        (1 - lambda_) * reached[t] + lambda_ * vs[t + 1]
        if t + 1 < NUM_STEPS and goes_on[t]
        else reached[t]
        for t in range(NUM_STEPS)
    ]
    return vs, np.minimum(clip_pg_rho, rhos) * (r + d * np.array(ahead) - v)


@pytest.mark.parametrize(
    ("lambda_", "clip_rho", "clip_pg_rho"), [(1.0, 1.0, 1.0), (0.8, 1.5, 2.0)]
)
def test_it_equals_the_definition(consistent, log_rhos, lambda_, clip_rho, clip_pg_rho):
    found = losses.vtrace(
        **consistent,
        log_rhos=log_rhos,
        lambda_=lambda_,
        clip_rho=clip_rho,
        clip_pg_rho=clip_pg_rho,
    )
    for b in range(BATCH):
        column = {name: values[:, b] for name, values in consistent.items()}
        vs, advantages = by_definition(
            column, log_rhos[:, b], lambda_, clip_rho, clip_pg_rho
        )
        np.testing.assert_allclose(found.vs[:, b], vs, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            found.pg_advantages[:, b], advantages, rtol=1e-4, atol=1e-5
        )


def test_it_by_hand():
    # Ratios 1/2 and 2, of which the second is clipped to 1.
    found = losses.vtrace(
        v_tm1=[1.0, 2.0],
        r_t=[3.0, 5.0],
        discount_t=[0.5, 0.5],
        v_t=[2.0, 4.0],
        log_rhos=np.log([0.5, 2.0]).astype(np.float32),
    )
    # The second TD error is 5 + 2 - 2 = 5; the first is 3 + 1 - 1 = 3, times 1/2.
    np.testing.assert_allclose(found.vs, [1 + 1.5 + 0.5 * 0.5 * 5, 2 + 5], rtol=1e-6)
    np.testing.assert_allclose(
        found.pg_advantages, [0.5 * (3 + 0.5 * 7 - 1), 5], rtol=1e-6
    )


def test_ratios_are_not_clipped_without_a_limit():
    found = losses.vtrace(
        [1.0], [3.0], [0.5], [2.0], tf.math.log([4.0]), clip_rho=None, clip_pg_rho=None
    )
    np.testing.assert_allclose(found.vs, [1 + 4 * 3], rtol=1e-6)
    np.testing.assert_allclose(found.pg_advantages, [4 * 3], rtol=1e-6)


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_on_policy_it_is_the_lambda_return_and_gae(consistent, lambda_):
    found = losses.vtrace(
        **consistent, log_rhos=tf.zeros([NUM_STEPS, BATCH]), lambda_=lambda_
    )
    advantages = losses.generalized_advantage_estimation(**consistent, lambda_=lambda_)
    returns = advantages + consistent["v_tm1"]
    np.testing.assert_allclose(found.vs, returns, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.pg_advantages, advantages, rtol=1e-4, atol=1e-5)


def test_truncation_bootstraps_its_own_last_observation():
    # Step 0 is truncated at a state worth 10; step 1 starts an episode with reward 99.
    found = losses.vtrace(
        v_tm1=[1.0, 0.0],
        r_t=[2.0, 99.0],
        discount_t=[0.5, 0.5],
        v_t=[10.0, 0.0],
        log_rhos=[0.0, 3.0],
        continues_t=[0, 1],
    )
    np.testing.assert_allclose(found.vs, [2 + 5, 99], rtol=1e-6)
    np.testing.assert_allclose(found.pg_advantages, [2 + 5 - 1, 99], rtol=1e-6)


def test_no_gradient_flows():
    values = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        found = losses.vtrace(
            values, [1.0, 1.0], [0.5, 0.5], values, log_rhos=[-0.1, 0.1]
        )
        total = tf.reduce_sum(found.vs + found.pg_advantages)
    assert tape.gradient(total, values) is None


def test_shapes_must_be_equal():
    with pytest.raises(ValueError, match=r"log_rhos: got shape \(1,\)"):
        losses.vtrace([1.0, 2.0], [1.0, 1.0], [0.5, 0.5], [1.0, 2.0], [0.0])


# rlax's test of V-trace, `[B, T]`: the ratios are of the softmaxes of these logits.
BEHAVIOUR = [
    [[8.9, 0.7], [5.0, 1.0], [0.6, 0.1], [-0.9, -0.1]],
    [[0.3, -5.0], [1.0, -8.0], [0.3, 1.7], [4.7, 3.3]],
]
TARGET = [
    [[0.4, 0.5], [9.2, 8.8], [0.7, 4.4], [7.9, 1.4]],
    [[1.0, 0.9], [1.0, -1.0], [-4.3, 8.7], [0.8, 0.3]],
]
ACTIONS = np.array([[0, 1, 0, 0], [1, 0, 0, 1]])
REWARDS = [[-1.3, -1.3, 2.3, 42.0], [1.3, 5.3, -3.3, -5.0]]
DISCOUNTS = [[0.0, 0.89, 0.85, 0.99], [0.88, 1.0, 0.83, 0.95]]
VALUES = [[2.1, 1.1, -3.1, 0.0, 8.4], [3.1, 0.1, -1.1, 7.4, -1.2]]
ERRORS = [
    [-1.6155143, -3.4973226, 1.8670533, 50.316002],
    [1.4662437, 3.6116405, -8.3327293e-5, -13.54],
]


def arguments_of_rlax():
    def log_probs(logits):
        each = tf.nn.log_softmax(np.float32(logits))
        return tf.gather(each, ACTIONS, axis=-1, batch_dims=2)

    values = np.float32(VALUES)
    in_batch = {
        "v_tm1": values[:, :-1],
        "r_t": np.float32(REWARDS),
        "discount_t": np.float32(DISCOUNTS),
        "v_t": values[:, 1:],
        "log_rhos": log_probs(TARGET) - log_probs(BEHAVIOUR),
    }
    return {name: np.transpose(numbers) for name, numbers in in_batch.items()}


@pytest.mark.parametrize("leak", [{}, {"alpha": 1.0}])
def test_the_numbers_of_rlax(leak):
    vtrace = losses.leaky_vtrace if leak else losses.vtrace
    arguments = arguments_of_rlax()
    found = vtrace(**arguments, **leak)
    errors = np.transpose(found.vs - arguments["v_tm1"])
    np.testing.assert_allclose(errors, ERRORS, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(
        np.transpose(found.pg_advantages), ERRORS, rtol=1e-3, atol=1e-6
    )


def test_leaky_ratios_by_hand():
    # The ratio 4 counts as 0.25 * 1 + 0.75 * 4 = 3.25, and as 2.5 where 2 is the limit.
    found = losses.leaky_vtrace(
        v_tm1=[1.0, 2.0],
        r_t=[3.0, 5.0],
        discount_t=[0.5, 0.5],
        v_t=[2.0, 4.0],
        log_rhos=np.log([4.0, 0.5]).astype(np.float32),
        alpha=0.25,
        clip_pg_rho=2.0,
    )
    # The TD errors are 3 and 5, and the second ratio is below all limits.
    vs = [1 + 3.25 * 3 + 0.5 * 3.25 * 2.5, 2 + 2.5]
    np.testing.assert_allclose(found.vs, vs, rtol=1e-6)
    np.testing.assert_allclose(
        found.pg_advantages, [3.5 * (3 + 0.5 * 4.5 - 1), 2.5], rtol=1e-6
    )


def test_without_clipping_it_is_importance_sampling(consistent, log_rhos):
    """The products of all ratios, as a sum by the definition has them."""
    found = losses.leaky_vtrace(**consistent, log_rhos=log_rhos, alpha=0.0)
    rhos = np.exp(log_rhos)
    delta = consistent["r_t"] + consistent["discount_t"] * consistent["v_t"]
    delta -= consistent["v_tm1"]
    for b in range(BATCH):
        expected = consistent["v_tm1"][:, b].astype(float)
        for s in range(NUM_STEPS):
            worth = 1.0
            for t in range(s, NUM_STEPS):
                worth *= rhos[t, b]
                expected[s] += worth * delta[t, b]
                worth *= consistent["discount_t"][t, b]
                if not consistent["continues_t"][t, b]:
                    break
        np.testing.assert_allclose(found.vs[:, b], expected, rtol=1e-4, atol=1e-4)
