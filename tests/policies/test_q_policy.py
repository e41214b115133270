"""`QPolicy`: values as logits, masks, and the argmax."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import network, q_network
from tfrl.policies import greedy_policy, q_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

Q_VALUES = [[1.0, 3.0, 2.0], [5.0, -1.0, 0.0]]


class Echo(network.Network):
    """Says that the value of each action is the observation's entry."""

    def call(self, observation):
        return observation, ()


def action_spec(low=0, high=2, dtype=tf.int32, shape=()):
    return tensor_spec.BoundedTensorSpec(shape, dtype, low, high)


OBSERVATION = tf.TensorSpec([3], tf.float32)
MASKED = {"q": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}


def split(observation):
    return observation["q"], observation["mask"]


def make(spec=None, observation=OBSERVATION, **kwargs):
    return q_policy.QPolicy(
        ts.time_step_spec(observation), spec or action_spec(), Echo(), **kwargs
    )


def step(observation):
    return ts.restart(tf.constant(observation), batch_size=len(observation))


def masked_step(mask):
    observation = {"q": tf.constant(Q_VALUES), "mask": tf.constant(mask)}
    return ts.restart(observation, batch_size=2)


def test_distribution_has_the_values_as_logits():
    distribution = make().distribution(step(Q_VALUES)).action
    np.testing.assert_array_equal(distribution.logits, Q_VALUES)
    assert distribution.dtype == tf.int32


def test_actions_are_sampled_with_probabilities_softmax_of_the_values():
    values = np.log([[0.7, 0.2, 0.1]] * 4000).astype(np.float32)
    actions = make(seed=0).action(step(values)).action.numpy()
    frequencies = np.bincount(actions, minlength=3) / 4000
    np.testing.assert_allclose(frequencies, [0.7, 0.2, 0.1], atol=0.03)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.uint8])
def test_actions_have_the_dtype_of_the_spec(dtype):
    policy = make(action_spec(dtype=dtype))
    assert policy.action(step(Q_VALUES)).action.dtype == dtype
    greedy = greedy_policy.GreedyPolicy(policy).action(step(Q_VALUES)).action
    assert greedy.dtype == dtype
    np.testing.assert_array_equal(greedy, [1, 0])


def test_log_probability_is_the_log_softmax_of_the_action():
    result = make(emit_log_probability=True).action(step(Q_VALUES))
    expected = tf.gather(tf.nn.log_softmax(Q_VALUES), result.action, batch_dims=1)
    np.testing.assert_allclose(result.info.log_probability, expected, rtol=1e-5)


def test_invalid_actions_get_the_least_number_as_logit():
    policy = make(observation=MASKED, observation_and_action_constraint_splitter=split)
    logits = policy.distribution(masked_step([[1, 0, 1], [0, 1, 1]])).action.logits
    least = np.finfo(np.float32).min
    np.testing.assert_array_equal(logits, [[1, least, 2], [least, -1, 0]])


def test_invalid_actions_are_never_taken():
    policy = make(
        observation=MASKED, observation_and_action_constraint_splitter=split, seed=0
    )
    greedy = greedy_policy.GreedyPolicy(policy)
    time_step = masked_step([[1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(greedy.action(time_step).action, [2, 1])
    for _ in range(20):
        first, second = policy.action(time_step).action.numpy()
        assert first in (0, 2)
        assert second == 1


def test_actions_that_do_not_start_at_zero_are_shifted():
    policy = make(action_spec(5, 7), validate_action_spec_and_network=False)
    greedy = greedy_policy.GreedyPolicy(policy)
    np.testing.assert_array_equal(greedy.action(step(Q_VALUES)).action, [6, 5])
    distribution = policy.distribution(step(Q_VALUES)).action
    np.testing.assert_array_equal(distribution.mode(), [6, 5])
    assert set(policy.action(step(Q_VALUES * 20)).action.numpy()) <= {5, 6, 7}


def test_actions_that_do_not_start_at_zero_name_the_wrapper():
    with pytest.raises(ValueError, match=r"minimum 5.*ActionOffsetWrapper"):
        make(action_spec(5, 7))


def test_vector_actions_are_refused():
    with pytest.raises(ValueError, match="only scalar actions"):
        make(action_spec(shape=(2,)))


def test_nested_actions_are_refused():
    with pytest.raises(ValueError, match="only scalar actions"):
        make([action_spec(), action_spec()])


def test_a_network_with_another_number_of_outputs_is_refused():
    with pytest.raises(ValueError, match=r"inner dims \(4,\)"):
        make(action_spec(high=3))


def test_a_network_for_another_action_spec_is_refused():
    class Other(Echo):
        action_spec = tf.TensorSpec([2], tf.float32)

    with pytest.raises(ValueError, match=r"compatible with q_network\.action_spec"):
        q_policy.QPolicy(ts.time_step_spec(OBSERVATION), action_spec(), Other())


def test_variables_are_those_of_the_network():
    net = q_network.QNetwork(OBSERVATION, action_spec(), fc_layer_params=(4,))
    policy = q_policy.QPolicy(ts.time_step_spec(OBSERVATION), action_spec(), net)
    assert [id(v) for v in policy.variables()] == [id(v) for v in net.variables]
    assert len(policy.variables()) == 4


def test_a_plain_keras_model_serves_as_network():
    model = keras.Sequential([keras.layers.Dense(3)])
    policy = q_policy.QPolicy(ts.time_step_spec(OBSERVATION), action_spec(), model)
    greedy = greedy_policy.GreedyPolicy(policy)
    expected = tf.argmax(model(tf.constant(Q_VALUES)), -1)
    np.testing.assert_array_equal(greedy.action(step(Q_VALUES)).action, expected)
    assert len(policy.variables()) == 2


def test_update_copies_the_weights_of_another_policy():
    def build(seed):
        net = q_network.QNetwork(OBSERVATION, action_spec(), seed=seed)
        return q_policy.QPolicy(ts.time_step_spec(OBSERVATION), action_spec(), net)

    one, other = build(1), build(2)
    one.update(other)
    for mine, theirs in zip(one.variables(), other.variables(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
