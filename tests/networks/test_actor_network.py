import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import ActorNetwork
from tfrl.specs import BoundedTensorSpec

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = BoundedTensorSpec([2], tf.float32, [-1, 0], [1, 4])
X = np.random.default_rng(0).normal(size=[6, 3]).astype(np.float32)


def test_actions_are_scaled_onto_the_bounds():
    net = ActorNetwork(OBSERVATION, ACTION, (4,), seed=1)
    assert net.create_variables() == tf.TensorSpec([2], tf.float32)
    net.variables[-2].assign(net.variables[-2] * 300)
    w1, b1, w2, b2 = (v.numpy() for v in net.variables)
    squashed = np.tanh(np.maximum(X @ w1 + b1, 0) @ w2 + b2)
    expected = [0, 2] + squashed * [1, 2]
    np.testing.assert_allclose(net(X)[0], expected, rtol=1e-5, atol=1e-5)


def test_initial_weights_are_those_of_the_paper():
    net = ActorNetwork(OBSERVATION, ACTION, (400, 300), seed=0)
    net.create_variables()
    kernels = [v.numpy() for v in net.variables if len(v.shape) == 2]
    # Uniform numbers fill their range.
    for kernel, bound in zip(kernels, [3**-0.5, 400**-0.5, 0.003], strict=True):
        assert 0.98 * bound < np.abs(kernel).max() <= bound
    assert not any(np.any(v) for v in net.variables if len(v.shape) == 1)


def test_equal_seeds_give_equal_weights_and_copies_other_ones():
    first, second = (ActorNetwork(OBSERVATION, ACTION, (4,), seed=1) for _ in "ab")
    np.testing.assert_array_equal(first(X)[0], second(X)[0])
    assert np.all(first.copy()(X)[0] != first(X)[0])


def test_nests_of_observations_and_actions():
    observation = {"a": OBSERVATION, "b": tf.TensorSpec([2, 2], tf.float64)}
    action = {"u": ACTION, "v": BoundedTensorSpec([], tf.float64, 5, 6)}
    net = ActorNetwork(
        observation,
        action,
        (4,),
        preprocessing_layers={
            "a": keras.layers.Flatten(),
            "b": keras.layers.Flatten(),
        },
        preprocessing_combiner=keras.layers.Concatenate(),
    )
    assert net.create_variables() == {
        "u": tf.TensorSpec([2], tf.float32),
        "v": tf.TensorSpec([], tf.float64),
    }
    # 3 + 4 numbers reach the first layer.
    assert net.variables[0].shape == (7, 4)


def test_sequences_give_one_action_a_step():
    net = ActorNetwork(OBSERVATION, ACTION, (4,), seed=1)
    x = tf.random.stateless_normal([2, 5, 3], [1, 2])
    actions, _ = net(x)
    np.testing.assert_allclose(actions[:, 3], net(x[:, 3])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "spec",
    [
        BoundedTensorSpec([], tf.int32, 0, 3),
        tf.TensorSpec([2], tf.float32),
        BoundedTensorSpec([2], tf.float32, -np.inf, np.inf),
    ],
)
def test_actions_must_be_bounded_floats(spec):
    with pytest.raises(ValueError, match="expected a bounded spec of floats"):
        ActorNetwork(OBSERVATION, spec)


def test_path_of_tf_agents():
    from tfrl.agents.ddpg import actor_network

    assert actor_network.ActorNetwork is ActorNetwork
