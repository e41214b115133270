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
