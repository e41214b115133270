import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.networks import CriticNetwork
from tfrl.specs import BoundedTensorSpec

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = BoundedTensorSpec([2], tf.float32, -1, 1)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=[6, 3]).astype(np.float32)
A = RANDOM.normal(size=[6, 2]).astype(np.float32)


def relu(x):
    return np.maximum(x, 0)


def test_value_is_that_of_the_weights():
    net = CriticNetwork(
        (OBSERVATION, ACTION),
        observation_fc_layer_params=(4,),
        action_fc_layer_params=(5,),
        joint_fc_layer_params=(7,),
        seed=1,
    )
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    wo, bo, wa, ba, wj, bj, wv, bv = (v.numpy() for v in net.variables)
    joint = np.concatenate([relu(X @ wo + bo), relu(A @ wa + ba)], axis=-1)
    expected = (relu(joint @ wj + bj) @ wv + bv)[:, 0]
    np.testing.assert_allclose(net((X, A))[0], expected, rtol=1e-5, atol=1e-7)


def test_initial_weights_are_those_of_the_paper():
    sizes = None, (400,), None, None, None, (300,)
    net = CriticNetwork((OBSERVATION, ACTION), *sizes, seed=0)
    net.create_variables()
    kernels = [v.numpy() for v in net.variables if len(v.shape) == 2]
    for kernel, bound in zip(kernels, [3**-0.5, 402**-0.5, 0.003], strict=True):
        assert 0.98 * bound < np.abs(kernel).max() <= bound


def test_twins_have_other_weights_also_with_a_seed():
    first = CriticNetwork((OBSERVATION, ACTION), joint_fc_layer_params=(7,), seed=1)
    again = CriticNetwork((OBSERVATION, ACTION), joint_fc_layer_params=(7,), seed=1)
    twin = first.copy(name="Twin")
    np.testing.assert_array_equal(first((X, A))[0], again((X, A))[0])
    assert np.all(twin((X, A))[0] != first((X, A))[0])


def test_nests_of_observations_and_actions():
    observation = {"a": OBSERVATION, "b": tf.TensorSpec([2, 2], tf.float64)}
    action = [ACTION, BoundedTensorSpec([], tf.float64, 5, 6)]
    net = CriticNetwork(
        (observation, action),
        joint_fc_layer_params=(4,),
        preprocessing_layers={
            "a": keras.layers.Flatten(),
            "b": keras.layers.Flatten(),
        },
        preprocessing_combiner=keras.layers.Concatenate(),
    )
    assert net.create_variables() == tf.TensorSpec([], tf.float32)
    # 3 + 4 numbers of observations and 2 + 1 of actions.
    assert net.variables[0].shape == (10, 4)


def test_images_go_through_convolutions():
    image = BoundedTensorSpec([8, 8, 1], tf.uint8, 0, 255)
    net = CriticNetwork((image, ACTION), [(2, 4, 4)], joint_fc_layer_params=(3,))
    net.create_variables()
    # Four positions of two filters, and two actions.
    assert net.variables[2].shape == (10, 3)


def test_sequences_give_one_value_a_step():
    net = CriticNetwork((OBSERVATION, ACTION), joint_fc_layer_params=(7,), seed=1)
    x = tf.random.stateless_normal([2, 5, 3], [1, 2])
    a = tf.random.stateless_normal([2, 5, 2], [3, 2])
    values, _ = net((x, a))
    np.testing.assert_allclose(
        values[:, 3], net((x[:, 3], a[:, 3]))[0], rtol=1e-5, atol=1e-6
    )


def test_a_last_layer_of_ones_own_is_copied():
    last = keras.layers.Dense(1, kernel_initializer="ones", activation="tanh")
    net = CriticNetwork((OBSERVATION, ACTION), last_layer=last)
    np.testing.assert_allclose(
        net((X, A))[0], np.tanh(X.sum(-1) + A.sum(-1)), rtol=1e-5, atol=1e-6
    )
    assert not last.built


@processors.multiplies_in_half_precision
def test_values_are_float32_under_mixed_precision():
    net = CriticNetwork(
        (OBSERVATION, ACTION), joint_fc_layer_params=(7,), dtype="mixed_bfloat16"
    )
    assert net.create_variables() == tf.TensorSpec([], tf.float32)


def test_the_specs_must_be_a_pair():
    with pytest.raises(ValueError, match="expected a pair of observation"):
        CriticNetwork(OBSERVATION)


def test_path_of_tf_agents():
    from tfrl.agents.ddpg import critic_network

    assert critic_network.CriticNetwork is CriticNetwork
