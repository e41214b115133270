import numpy as np
import pytest

from tfrl.networks.heads import policy_value


@pytest.mark.parametrize("outer", [(2,), (2, 5)])
def test_logits_and_value_are_linear(outer):
    head = policy_value.PolicyValueHead(num_actions=4)
    inputs = np.random.default_rng(0).normal(size=[*outer, 3]).astype(np.float32)
    logits, value = head(inputs)
    assert logits.shape == (*outer, 4)
    assert value.shape == outer
    policy_kernel, _, value_kernel, _ = head.get_weights()
    np.testing.assert_allclose(logits, inputs @ policy_kernel, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        value, (inputs @ value_kernel)[..., 0], rtol=1e-5, atol=1e-6
    )
