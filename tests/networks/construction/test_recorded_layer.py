"""Each layer can be made again from its configuration, and copied, without weights."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import tfrl
from tests.pairs import pairs
from tfrl.acme.tf import networks, savers
from tfrl.networks.construction import recorded_layer, seeding
from tfrl.networks.layers import noisy
from tfrl.specs import bounded_tensor_spec

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
