"""Each layer can be made again from its configuration, and copied, without weights."""

import copy
import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfrl
from tests.pairs import pairs
from tfrl import networks as tfrl_networks
from tfrl.acme.tf import networks, savers
from tfrl.acme.tf import utils as tf2_utils
from tfrl.networks import network, q_network
from tfrl.networks.construction import recorded_layer, seeding
from tfrl.networks.layers import noisy
from tfrl.specs import bounded_tensor_spec, tensor_spec

X = tf.constant([[0.5, -2.0, 3.0], [1.0, 0.0, -0.5]])
SPEC = bounded_tensor_spec.BoundedTensorSpec([3], tf.float32, [0, -1, -2], [1, 1, 2])
FRAMES = tf.tile(tf.reshape(X, [2, 1, 3, 1]), [1, 3, 1, 1])
OAR = {"observation": X, "action": tf.constant([0, 1]), "reward": tf.constant([1.0, 2])}
MASKED = {"x": X, "legal_actions_mask": tf.constant([[1, 0, 0], [0, 1, 0]])}


def dense():
    return keras.layers.Dense(3, kernel_initializer="ones")


@keras.saving.register_keras_serializable("tfrl_tests")
class OneEntry(keras.layers.Layer):
    def call(self, inputs):
        return inputs["x"]


@keras.saving.register_keras_serializable("tfrl_tests")
class Sum(keras.layers.Layer):
    def call(self, first, second):
        return first + second


LAYERS = {
    "AtariTorso": (lambda: networks.AtariTorso(padding="same"), FRAMES),
    "CategoricalHead": (lambda: networks.CategoricalHead([2, 3]), X),
    "ClipToSpec": (lambda: networks.ClipToSpec(SPEC), X),
    "ClippedGaussian": (lambda: networks.ClippedGaussian(0.1, seed=1), X),
    "CriticMultiplexer": (
        lambda: networks.CriticMultiplexer(dense(), tf.nn.relu),
        (X, X),
    ),
    "DeepAtariTorso": (networks.DeepAtariTorso, FRAMES),
    "DiscreteFilteredQNetwork": (
        lambda: networks.DiscreteFilteredQNetwork(dense(), dense(), 0.5),
        X,
    ),
    "DiscreteValuedHead": (
        lambda: networks.DiscreteValuedHead(np.zeros(2), np.ones(2), 3),
        X,
    ),
    "DuellingMLP": (lambda: networks.DuellingMLP(3, [4]), X),
    "EpsilonGreedy": (lambda: networks.EpsilonGreedy(0.1, -5.0), X),
    "ExpQWeightedPolicy": (
        lambda: networks.ExpQWeightedPolicy(
            dense(), networks.CriticMultiplexer(keras.layers.Dense(1)), seed=2
        ),
        X,
    ),
    "IQNHead": (lambda: networks.IQNHead(2, [3], seed=3), X),
    "LayerNormAndResidualMLP": (lambda: networks.LayerNormAndResidualMLP(4, 2), X),
    "LayerNormMLP": (
        lambda: networks.LayerNormMLP(
            [4, 3], keras.initializers.HeNormal(seed=1), tf.nn.relu
        ),
        X,
    ),
    "Multihead": (lambda: networks.Multihead([dense(), tf.nn.relu]), X),
    "MultivariateGaussianMixture": (
        lambda: networks.MultivariateGaussianMixture(2, 2, init_scale=0.1),
        X,
    ),
    "MultivariateNormalDiagHead": (
        lambda: networks.MultivariateNormalDiagHead(2, 0.2, tanh_mean=True),
        X,
    ),
    "NearZeroInitializedLinear": (
        lambda: networks.NearZeroInitializedLinear(2, 1.0),
        X,
    ),
    "NetworkWithMaskedEpsilonGreedy": (
        lambda: networks.NetworkWithMaskedEpsilonGreedy(OneEntry(), 0.5, seed=4),
        MASKED,
    ),
    "OAREmbedding": (lambda: networks.OAREmbedding(dense(), 2), OAR),
    "PolicyValueHead": (lambda: networks.PolicyValueHead(3), X),
    "RescaleToSpec": (lambda: networks.RescaleToSpec(SPEC), X),
    "ResNetTorso": (lambda: networks.ResNetTorso([2], [1], [3]), FRAMES),
    "TanhToSpec": (lambda: networks.TanhToSpec(SPEC), X),
    "DrQTorso": (networks.DrQTorso, FRAMES),
    "UnpackWrapper": (lambda: networks.UnpackWrapper(Sum()), (X, X)),
    "UnivariateGaussianMixture": (lambda: networks.UnivariateGaussianMixture(2), X),
}
DISTRIBUTION = tfp.distributions.Normal(X, 1.0)
LAYERS |= {
    name: (getattr(networks, name), DISTRIBUTION)
    for name in ("StochasticMeanHead", "StochasticModeHead", "ApproximateMode")
}
LAYERS["NoisyDense"] = (lambda: noisy.NoisyDense(3, "relu", seed=1), X)
LAYERS["StochasticSamplingHead"] = (
    lambda: networks.StochasticSamplingHead(seed=5),
    DISTRIBUTION,
)


def numbers(outputs):
    """Returns tensors, and of distributions the probabilities or the means."""

    def of_leaf(leaf):
        if tf.is_tensor(leaf):
            return leaf
        is_discrete = hasattr(leaf, "probs_parameter")
        return leaf.probs_parameter() if is_discrete else leaf.mean()

    return list(map(of_leaf, tf.nest.flatten(outputs)))


def revived(layer):
    config = keras.saving.serialize_keras_object(layer)
    return keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))


@pytest.mark.parametrize(
    ("name", "make_again"), pairs(LAYERS, [revived, seeding.copy_layer])
)
def test_layer_is_made_again(name, make_again):
    make, inputs = LAYERS[name]
    layer = make()
    again = make_again(layer)
    assert type(again) is type(layer)
    layer(inputs)
    again(inputs)
    assert not {id(v) for v in again.variables} & {id(v) for v in layer.variables}
    # The states of seeds, too.
    for ours, theirs in zip(again.variables, layer.variables, strict=True):
        ours.assign(theirs)
    for ours, theirs in zip(
        numbers(again(inputs)), numbers(layer(inputs)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_every_layer_is_checked():
    layers = {
        name
        for package in (networks, tfrl.networks)
        for name in package.__all__
        if isinstance(getattr(package, name), type)
        and issubclass(getattr(package, name), recorded_layer.RecordedLayer)
    }
    assert layers - {"GaussianMixtureHead"} == set(LAYERS)


def test_a_layer_made_again_is_not_built():
    layer = networks.LayerNormMLP([2])
    layer(X)
    assert not revived(layer).built


def test_a_checkpoint_of_a_layer_alone_holds_layers_in_its_lists(tmp_path):
    def layer():
        return networks.CriticMultiplexer(networks.LayerNormMLP([4, 1]))

    saved = layer()
    output = saved(X, X)
    arguments = {"directory": tmp_path, "add_uid": False}
    assert savers.Checkpointer({"critic": saved}, **arguments).save()
    restored = layer()
    restored(X, X)
    savers.Checkpointer({"critic": restored}, **arguments)
    np.testing.assert_array_equal(restored(X, X), output)
    with pytest.raises(ValueError, match="'critic' has a network without variables"):
        savers.Checkpointer({"critic": layer()}, **arguments)


PLAIN = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


def configurable(**configured):
    """Replaces a class's constructor as `gin.configurable` does."""

    def decorate(cls):
        init = cls.__init__

        @functools.wraps(init)
        def wrapper(*args, **kwargs):
            init(*args, **{**configured, **kwargs})

        cls.__init__ = wrapper
        return cls

    return decorate


@configurable(size=5)
class Linear(network.Network):
    def __init__(self, input_tensor_spec, size=4, name="Linear"):
        super().__init__(input_tensor_spec, (), name)
        self._layer = keras.layers.Dense(size)

    def call(self, observation, step_type=None, network_state=(), training=False):
        return self._layer(observation), network_state


def test_a_network_of_a_decorated_class_is_made_and_copied():
    made = Linear(PLAIN)
    assert made.create_variables().shape == (5,)
    copied = made.copy(name="copy")
    assert (copied.create_variables().shape, copied.name) == ((5,), "copy")
    assert Linear(PLAIN, size=6).copy().create_variables().shape == (6,)


def test_a_decorated_class_without_a_constructor_takes_its_parents_arguments():
    @configurable(fc_layer_params=(7,))
    class Q(q_network.QNetwork):
        pass

    made = Q(PLAIN, ACTION)
    made.create_variables()
    assert made.copy().create_variables().shape == (2,)
    assert made.variables[0].shape == (3, 7)


def doubled(inputs):
    return 2 * inputs


MAKE = {
    "a function": lambda: networks.Sequential([doubled, keras.layers.Dense(2)]),
    "a lambda": lambda: networks.Sequential([lambda x: -x, keras.layers.Dense(2)]),
    "heads": lambda: networks.Sequential(
        [
            tf2_utils.batch_concat,
            networks.LayerNormMLP([4], activate_final=True),
            networks.MultivariateNormalDiagHead(2),
            networks.StochasticModeHead(),
        ]
    ),
    "a layer": lambda: networks.DuellingMLP(2, [4]),
    "a state": lambda: networks.DeepRNN([tf.nn.relu, keras.layers.LSTMCell(2)]),
    "a network": lambda: tfrl_networks.QNetwork(PLAIN, ACTION, fc_layer_params=(4,)),
}


def output_of(network):
    outputs = network(X)
    return outputs[0] if isinstance(outputs, tuple) else outputs


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("is_called", [False, True])
def test_a_copy_has_weights_of_its_own_with_the_same_values(kind, is_called):
    network = MAKE[kind]()
    if is_called:  # The network does not get the specs of its inputs.
        network(X)
    else:
        tf2_utils.create_variables(network, [PLAIN])
    before = output_of(network)
    copied = copy.deepcopy(network)
    assert type(copied) is type(network)
    for variable in network.variables:
        variable.assign(variable + 1)
    np.testing.assert_array_equal(output_of(copied), before)
    assert not np.array_equal(output_of(network), before)


def test_a_network_without_variables_is_copied():
    copied = copy.deepcopy(networks.Sequential([tf2_utils.batch_concat]))
    np.testing.assert_array_equal(copied(X)[0], X)


def test_a_copy_before_there_are_variables_has_the_same_seeds():
    def kernels(*stacks):
        for stack in stacks:
            tf2_utils.create_variables(stack, [PLAIN])
        return [stack.variables[0].numpy() for stack in stacks]

    network, untouched = (
        networks.Sequential([keras.layers.Dense(2)], PLAIN, seed=1) for _ in range(2)
    )
    copied = copy.deepcopy(network)
    first, second = kernels(network, copied)
    np.testing.assert_array_equal(first, second)
    # The seeds of a later `copy` are as if there had been no `deepcopy`.
    first, second = kernels(network.copy(), untouched.copy())
    np.testing.assert_array_equal(first, second)


def test_a_copy_draws_the_numbers_that_the_original_would_draw():
    noise = networks.ClippedGaussian(1.0, seed=2)
    noise(X)
    copied = copy.deepcopy(noise)
    following = noise(X)
    np.testing.assert_array_equal(copied(X), following)


def test_a_copy_of_what_is_not_trained_is_not_trained():
    network = networks.Sequential([keras.layers.Dense(2)], PLAIN)
    network.create_variables()
    network.trainable = False
    assert copy.deepcopy(network).trainable_variables == []


def test_parts_of_a_nest_are_copied_once():
    network = networks.Sequential([keras.layers.Dense(2)], PLAIN)
    first, second = copy.deepcopy([network, network])
    assert first is second is not network


def test_a_layer_that_did_not_see_its_inputs_says_what_is_missing():
    layer = networks.LayerNormMLP([2])
    layer(inputs=X)  # Only inputs by position are remembered.
    with pytest.raises(ValueError, match=r"'layer_norm_mlp\w*' are not known.*create_"):
        copy.deepcopy(layer)
