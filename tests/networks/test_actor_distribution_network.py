import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import utils as distribution_utils
from tfrl.networks import actor_distribution_network, normal_projection_network
from tfrl.specs import tensor_spec

ActorDistributionNetwork = actor_distribution_network.ActorDistributionNetwork
OBSERVATION = tf.TensorSpec([3], tf.float32)
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3)
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1.0, 0.0], [3.0, 2.0])
X = np.random.default_rng(0).normal(size=[5, 3]).astype(np.float32)


def test_discrete_action_gives_a_categorical_of_its_dtype():
    net = ActorDistributionNetwork(OBSERVATION, DISCRETE, fc_layer_params=(6,), seed=1)
    net.create_variables()
    w1, b1, w2, b2 = (v.numpy() for v in net.variables)
    distribution, state = net(X)
    assert isinstance(distribution, tfp.distributions.Categorical)
    assert distribution.dtype == tf.int64
    logits = np.maximum(X @ w1 + b1, 0) @ w2 + b2
    np.testing.assert_allclose(distribution.logits, logits, rtol=1e-5, atol=1e-6)
    assert state == ()


def test_continuous_action_gives_a_normal_squashed_into_the_spec():
    net = ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, fc_layer_params=(6,), seed=1
    )
    net.create_variables()
    w1, b1, w2, b2, std = (v.numpy() for v in net.variables)
    distribution, _ = net(X)
    assert isinstance(distribution, tfp.distributions.MultivariateNormalDiag)
    means = np.maximum(X @ w1 + b1, 0) @ w2 + b2
    expected = np.array([1.0, 1.0]) + np.array([2.0, 1.0]) * np.tanh(means)
    np.testing.assert_allclose(distribution.mode(), expected, rtol=1e-5, atol=1e-6)
    assert std.shape == (2,)
    np.testing.assert_allclose(distribution.stddev(), np.full([5, 2], 0.35), rtol=1e-5)


def test_defaults():
    net = ActorDistributionNetwork(OBSERVATION, DISCRETE)
    net.create_variables()
    shapes = [tuple(v.shape) for v in net.variables]
    assert shapes == [(3, 200), (200,), (200, 100), (100,), (100, 4), (4,)]


def test_nested_actions_give_nested_distributions():
    net = ActorDistributionNetwork(OBSERVATION, {"a": DISCRETE, "b": [CONTINUOUS]})
    distributions, _ = net(X)
    assert distributions["a"].batch_shape == (5,)
    assert distributions["b"][0].event_shape == (2,)
    assert net.output_spec["a"].sample_spec == DISCRETE
    assert net.output_tensor_spec["b"][0] == CONTINUOUS


def test_create_variables_describes_the_distributions():
    net = ActorDistributionNetwork(OBSERVATION, (DISCRETE, CONTINUOUS))
    categorical, normal = net.create_variables()
    assert categorical.event_spec == tf.TensorSpec([], tf.int64)
    assert categorical.parameters.type_ is tfp.distributions.Categorical
    assert categorical.parameters.params["logits"] == tf.TensorSpec([4])
    assert normal.parameters.params["scale_diag"] == tf.TensorSpec([2])
    distribution_utils.assert_specs_are_compatible(
        (categorical, normal), (DISCRETE, CONTINUOUS), "actor"
    )


@pytest.mark.parametrize("spec", [DISCRETE, CONTINUOUS])
def test_sequences_give_the_same_as_their_steps(spec):
    net = ActorDistributionNetwork(OBSERVATION, spec, seed=1)
    sequences = tf.random.stateless_normal([2, 4, 3], [1, 2])
    distribution, _ = net(sequences)
    assert distribution.batch_shape == (2, 4)
    step, _ = net(sequences[:, 1])
    action = tf.zeros([2, *spec.shape], spec.dtype)
    np.testing.assert_allclose(
        distribution.log_prob(tf.repeat(action[:, tf.newaxis], 4, axis=1))[:, 1],
        step.log_prob(action),
        rtol=1e-5,
    )


def test_nested_observations_are_accepted():
    import keras

    net = ActorDistributionNetwork(
        {"a": OBSERVATION, "b": OBSERVATION},
        DISCRETE,
        preprocessing_combiner=keras.layers.Add(),
    )
    distribution, _ = net({"a": X, "b": X})
    assert distribution.batch_shape == (5,)


def test_mask_makes_actions_impossible():
    net = ActorDistributionNetwork(OBSERVATION, DISCRETE, seed=0)
    mask = np.array([[1, 0, 1, 0]] * 5)
    distribution, _ = net(X, mask=mask)
    probabilities = tf.nn.softmax(distribution.logits).numpy()
    np.testing.assert_array_equal(probabilities[:, 1::2], 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    assert np.all(np.isfinite(distribution.logits))


def test_custom_projection_network():
    def projection(spec):
        return normal_projection_network.NormalProjectionNetwork(
            spec, mean_transform=None, state_dependent_std=True
        )

    net = ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, continuous_projection_net=projection, seed=0
    )
    distribution, _ = net(X)
    assert np.ptp(distribution.stddev()[:, 0]) > 0


def test_same_seed_same_weights():
    weights = []
    for _ in range(2):
        net = ActorDistributionNetwork(OBSERVATION, (DISCRETE, CONTINUOUS), seed=3)
        net.create_variables()
        weights.append([v.numpy() for v in net.variables])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_copy_has_weights_of_its_own():
    net = ActorDistributionNetwork(OBSERVATION, {"a": DISCRETE})
    copied = net.copy(name="Copy")
    net.create_variables()
    copied.create_variables()
    assert len(copied.variables) == len(net.variables) == 6
    assert not np.array_equal(net.variables[0], copied.variables[0])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_sampling_in_a_function_traces_once(jit_compile):
    net = ActorDistributionNetwork(OBSERVATION, CONTINUOUS)
    net.create_variables()

    @tf.function(jit_compile=jit_compile)
    def sample(x, seed):
        return net(x)[0].sample(seed=seed)

    for i in range(3):
        action = sample(X, tf.constant([0, i]))
    assert action.shape == (5, 2)
    assert sample.experimental_get_tracing_count() == 1


def test_gradient_of_the_log_probability_reaches_every_variable():
    net = ActorDistributionNetwork(OBSERVATION, CONTINUOUS, seed=0)
    net.create_variables()

    def log_probability():
        return tf.reduce_sum(net(X)[0].log_prob(tf.ones([5, 2])))

    with tf.GradientTape() as tape:
        value = log_probability()
    gradients = tape.gradient(value, net.trainable_variables)
    step = 1e-3
    for gradient, variable in zip(gradients, net.trainable_variables, strict=True):
        norm = tf.norm(gradient)
        assert float(norm) > 0
        # Along the gradient, the function changes by the gradient's norm.
        before = tf.identity(variable)
        ends = []
        for sign in (-1, 1):
            variable.assign(before + sign * step * gradient / norm)
            ends.append(log_probability())
        variable.assign(before)
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * step), norm, rtol=0.02)
