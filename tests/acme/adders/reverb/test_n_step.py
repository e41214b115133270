"""The n-step return in NumPy."""

import numpy as np
import pytest

from tfrl.acme.adders.reverb import n_step


def test_the_discount_has_one_factor_less_than_steps():
    total, discount = n_step.n_step_return([1, 2, 3], [0.9, 0.8, 0.7], 0.5)
    np.testing.assert_allclose(total, 1 + 0.45 * 2 + 0.45 * 0.4 * 3, rtol=1e-12)
    np.testing.assert_allclose(discount, 0.25 * 0.9 * 0.8 * 0.7, rtol=1e-12)


@pytest.mark.parametrize(
    ("reward", "discount", "expected"),
    [
        (np.float32, np.float32, (np.float32, np.float32)),
        (np.float32, np.float64, (np.float32, np.float64)),
        (np.float64, np.float32, (np.float64, np.float32)),
        (np.int32, np.float32, (np.float64, np.float32)),
    ],
)
@pytest.mark.parametrize("num_steps", [1, 2])
def test_dtypes_do_not_depend_on_the_number_of_steps(
    reward, discount, expected, num_steps
):
    total, product = n_step.n_step_return(
        [reward(3)] * num_steps, [discount(0.5)] * num_steps, 0.25
    )
    assert (total.dtype, product.dtype) == expected
    assert (total, product) == [(3, 0.5), (3.375, 0.0625)][num_steps - 1]


def test_shapes_of_a_reward_and_its_discount_are_broadcast():
    ones = [np.ones([3, 1], np.float32)] * 2
    halves = [np.full([2], 0.5, np.float32)] * 2
    total, product = n_step.n_step_return(ones, halves, 0.5)
    np.testing.assert_array_equal(total, np.full([3, 2], 1.25))
    np.testing.assert_array_equal(product, [0.125, 0.125])


def test_one_discount_serves_a_nest_of_rewards():
    rewards = [{"a": np.float32(1), "b": np.float32(2)}] * 2
    total, product = n_step.n_step_return(rewards, [np.float32(1)] * 2, 0.5)
    assert total == {"a": 1.5, "b": 3}
    assert product == {"a": 0.5, "b": 0.5}


def test_nests_of_different_structures_are_refused():
    with pytest.raises(ValueError, match="structure"):
        n_step.n_step_return([{"a": 1.0}], [{"b": 1.0}], 0.5)
