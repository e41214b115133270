"""Discrete actions and masks."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import utils
from tfrl.specs import tensor_spec


def test_number_of_actions_counts_both_bounds():
    spec = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 6)
    assert utils.get_num_actions_from_tensor_spec(spec) == 7


@pytest.mark.parametrize(
    "spec",
    [
        tf.TensorSpec([], tf.int32),
        tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 6),
        tensor_spec.BoundedTensorSpec([], tf.float32, 0, 6),
        tensor_spec.BoundedTensorSpec([], tf.int32, 1, 6),
    ],
)
def test_specs_without_a_number_of_actions_are_refused(spec):
    with pytest.raises(ValueError, match=r"action_spec: .* minimum "):
        utils.get_num_actions_from_tensor_spec(spec)


def test_masked_argmax_looks_at_allowed_entries_only():
    values = tf.constant([[1.0, 5.0, 3.0], [2.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
    mask = tf.constant([[1, 0, 1], [0, 1, 1], [0, 0, 0]])
    best = utils.masked_argmax(values, mask, tf.int64)
    np.testing.assert_array_equal(best, [2, 1, -1])
    assert best.dtype == tf.int64


def test_random_valid_indices_are_valid_and_alike():
    mask = tf.tile([[True, False, True, True]], [3000, 1])
    index = utils.random_valid_index(mask, tf.constant([1, 2])).numpy()
    frequencies = np.bincount(index, minlength=4) / 3000
    np.testing.assert_allclose(frequencies, [1 / 3, 0, 1 / 3, 1 / 3], atol=0.04)


def test_policy_info_has_room_for_predictions():
    info = utils.PolicyInfo(predicted_rewards_mean=1.0)
    assert info.log_probability == ()
    assert utils.InfoFields.PREDICTED_REWARDS_MEAN in info._fields
    assert utils.InfoFields.LOG_PROBABILITY == "log_probability"


def test_log_probabilities_of_independent_parts_are_added():
    import tensorflow_probability as tfp

    normal = tfp.distributions.Normal(tf.zeros([2, 3]), 1.0)
    x = tf.constant([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    base = 3 * -0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(
        utils.action_log_probability(normal, x, 1), [base - 2.5, base], rtol=1e-5
    )
