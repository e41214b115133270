"""Returns and advantages of sequences against loops in Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.losses import returns, v_trace

# One shape, since each shape is traced once.
LENGTH, BATCH = 7, 2
NUMBERS = properties.floats(LENGTH, BATCH)
DISCOUNTS = st.lists(
    st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    min_size=LENGTH * BATCH,
    max_size=LENGTH * BATCH,
).map(lambda x: np.array(x, np.float32).reshape(LENGTH, BATCH))
CONTINUES = properties.flags(LENGTH, BATCH)
LAMBDAS = st.sampled_from([0.0, 0.5, 1.0])


def assert_close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-3)


def backwards(increments, factors):
    """Solves `x_t = increments_t + factors_t x_(t+1)`."""
    result, following = np.zeros((LENGTH, BATCH)), np.zeros(BATCH)
    for t in reversed(range(LENGTH)):
        following = increments[t] + factors[t] * following
        result[t] = following
    return result


@given(NUMBERS, DISCOUNTS, properties.floats(BATCH))
def test_discounted_returns(r, d, final):
    last = np.zeros((LENGTH, BATCH))
    last[-1] = d[-1] * final
    expected = backwards(r + last, np.float64(d))
    assert_close(returns.discounted_returns(r, d, final), expected)
    assert_close(returns.discounted_return(r, d, final), expected[0])


@given(NUMBERS, DISCOUNTS, NUMBERS, CONTINUES, LAMBDAS, st.integers(1, LENGTH + 1))
def test_n_step_returns(r, d, v, continues, mix, n):
    expected = np.zeros((LENGTH, BATCH))
    for b in range(BATCH):
        for t in range(LENGTH):
            last = t
            while last + 1 < min(t + n, LENGTH) and continues[last, b]:
                last += 1
            total = v[last, b]
            for i in range(last, t - 1, -1):
                onward = total if i == last else mix * total + (1 - mix) * v[i, b]
                total = r[i, b] + d[i, b] * onward
            expected[t, b] = total
    assert_close(returns.n_step_returns(r, d, v, n, continues, mix), expected)


@given(NUMBERS, DISCOUNTS, NUMBERS, CONTINUES, LAMBDAS)
def test_lambda_returns(r, d, v, continues, mix):
    mixes = mix * continues
    mixes[-1] = 0
    expected = backwards(r + d * (1 - mixes) * v, d * mixes)
    # What a discount of 0 leaves out need not be finite.
    v = np.where(d == 0, np.float32(np.nan), v)
    assert_close(returns.lambda_returns(r, d, v, mix, continues), expected)


@given(NUMBERS, NUMBERS, DISCOUNTS, NUMBERS, CONTINUES, LAMBDAS)
def test_advantages(v_tm1, r, d, v, continues, mix):
    expected = backwards(r + d * v - v_tm1, d * mix * continues)
    got = returns.generalized_advantage_estimation(v_tm1, r, d, v, mix, continues)
    assert_close(got, expected)


@given(NUMBERS, NUMBERS, DISCOUNTS, NUMBERS, CONTINUES, NUMBERS, LAMBDAS)
def test_v_trace(v_tm1, r, d, v, continues, logits, mix):
    log_rhos = logits / 40
    rhos = np.exp(np.float64(log_rhos))
    errors = r + d * v - v_tm1
    onward = d * mix * continues
    corrections = backwards(
        np.minimum(2.0, rhos) * errors, onward * np.minimum(1.0, rhos)
    )
    following = onward * np.concatenate([corrections[1:], np.zeros((1, BATCH))])
    got = v_trace.vtrace(
        v_tm1,
        r,
        d,
        v,
        log_rhos,
        lambda_=mix,
        clip_rho=2.0,
        clip_pg_rho=1.5,
        continues_t=continues,
    )
    assert_close(got.vs, v_tm1 + corrections)
    assert_close(got.pg_advantages, np.minimum(1.5, rhos) * (errors + following))
