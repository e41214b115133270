import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import CriticRnnNetwork, MemoryCriticNetwork
from tfrl.specs import BoundedTensorSpec

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -1, 1)


def test_the_value_remembers_until_the_episode_begins_anew():
    net = CriticRnnNetwork(
        (OBSERVATION, ACTION), None, (3,), (5,), (6,), (4,), (7,), seed=3
    )
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    inputs = tf.ones([1, 4, 2]), tf.ones([1, 4, 1])
    values = net(inputs, step_type=tf.constant([[0, 1, 2, 0]]))[0][0].numpy()
    assert len(set(values[:3])) == 3
    np.testing.assert_allclose(values[3], values[0], rtol=1e-6)


def test_defaults_and_initial_weights():
    net = CriticRnnNetwork((OBSERVATION, ACTION), lstm_size=(40,), seed=0)
    net.create_variables()
    kernels = [v for v in net.trainable_variables if len(v.shape) == 2]
    assert [tuple(v.shape) for v in kernels] == [
        (2, 200),
        (1, 200),
        (400, 100),
        (100, 160),
        (40, 160),
        (40, 200),
        (200, 100),
        (100, 1),
    ]
    assert 0.98 * 400**-0.5 < np.abs(kernels[2].numpy()).max() <= 400**-0.5
    assert np.abs(kernels[-1].numpy()).max() <= 0.003


def test_a_recurrent_layer_is_needed():
    with pytest.raises(ValueError, match="lstm_size"):
        CriticRnnNetwork((OBSERVATION, ACTION))


def test_path_of_tf_agents():
    from tfrl.agents.ddpg import critic_rnn_network

    assert critic_rnn_network.CriticRnnNetwork is CriticRnnNetwork


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(inputs, kernel, recurrent_kernel, bias):
    """The outputs `[T, n]` of an LSTM from zeros, for one sequence `[T, m]`."""
    hidden = cell = np.zeros(recurrent_kernel.shape[0])
    outputs = []
    for x in inputs:
        sums = x @ kernel + hidden @ recurrent_kernel + bias
        keep_in, keep, new, out = np.split(sums, 4)
        cell = sigmoid(keep) * cell + sigmoid(keep_in) * np.tanh(new)
        hidden = sigmoid(out) * np.tanh(cell)
        outputs.append(hidden)
    return np.array(outputs)


def test_values_are_those_of_a_memory_of_observations_and_each_action():
    net = MemoryCriticNetwork(
        (OBSERVATION, ACTION), None, (3,), (4,), (5,), activation_fn="tanh", seed=1
    )
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    noise = np.random.default_rng(0)
    observations = noise.normal(size=(5, 2))
    actions = noise.normal(size=(5, 1))
    first, first_bias, *recurrent, joint, joint_bias, last, last_bias = (
        v.numpy().astype(np.float64) for v in net.trainable_variables
    )
    remembered = lstm(np.tanh(observations @ first + first_bias), *recurrent)
    inputs = np.concatenate([remembered, actions], 1)
    expected = np.tanh(inputs @ joint + joint_bias) @ last + last_bias
    values, _ = net(
        (tf.constant([observations], tf.float32), tf.constant([actions], tf.float32))
    )
    np.testing.assert_allclose(values, expected.T, rtol=1e-5, atol=1e-7)


def test_a_value_depends_on_the_action_of_its_own_step_alone():
    net = MemoryCriticNetwork((OBSERVATION, ACTION), seed=1)
    net.create_variables()
    observations, actions = tf.ones([1, 3, 2]), tf.zeros([1, 3, 1])
    with tf.GradientTape() as tape:
        tape.watch([observations, actions])
        value = net((observations, actions))[0][0, 1]
    of_observations, of_actions = tape.gradient(value, [observations, actions])
    moved = [np.abs(x[0]).max(-1) > 0 for x in (of_observations, of_actions)]
    np.testing.assert_array_equal(moved, [[True, True, False], [False, True, False]])


def test_the_memory_begins_with_each_episode():
    net = MemoryCriticNetwork((OBSERVATION, ACTION), seed=3)
    inputs = tf.ones([1, 4, 2]), tf.ones([1, 4, 1])
    values = net(inputs, step_type=tf.constant([[0, 1, 2, 0]]))[0][0].numpy()
    assert len(set(values[:3])) == 3
    np.testing.assert_allclose(values[3], values[0], rtol=1e-6)


def test_specs_are_a_pair():
    with pytest.raises(ValueError, match=r"input_tensor_spec: got .* expected a pair"):
        MemoryCriticNetwork(OBSERVATION)
