"""Functions that make values smaller, and their inverses."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrl.losses import value_rescaling

VALUES = st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4).map(
    lambda x: np.array(x, np.float32)
)


@given(VALUES, st.sampled_from([1e-3, 1e-2, 1.0]))
def test_values_come_back(x, eps):
    squashed = value_rescaling.signed_hyperbolic(x, eps)
    size = np.abs(np.float64(x))
    root = np.sign(x) * (np.expm1(np.log1p(size) / 2) + eps * size)
    np.testing.assert_allclose(squashed, root, rtol=1e-5, atol=1e-30)
    back = value_rescaling.signed_parabolic(squashed, eps)
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-30)
    logs = value_rescaling.signed_logp1(x)
    np.testing.assert_allclose(
        logs, np.sign(x) * np.log1p(np.abs(np.float64(x))), rtol=1e-5, atol=1e-30
    )
    back = value_rescaling.signed_expm1(logs)
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-30)
