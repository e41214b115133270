import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.acme.tf.networks import rescaling, stochastic
from tfrl.distributions import sampling
from tfrl.networks import sequential
from tfrl.networks.heads import distributional
from tfrl.specs import array_spec

LOG_NORMAL = tfp.distributions.LogNormal([0.0, 1.0], [1.0, 0.5])


def test_mode_and_mean_are_those_of_the_distribution():
    np.testing.assert_allclose(
        stochastic.StochasticModeHead()(LOG_NORMAL), np.exp([-1, 0.75]), rtol=1e-6
    )
    np.testing.assert_allclose(
        stochastic.StochasticMeanHead()(LOG_NORMAL), np.exp([0.5, 1.125]), rtol=1e-6
    )


def test_samples_are_of_the_distribution_and_seeded():
    normal = tfp.distributions.MultivariateNormalDiag(
        tf.fill([4000, 2], 3.0), tf.fill([4000, 2], 0.5)
    )
    head = stochastic.StochasticSamplingHead(seed=1)
    first, second = head(normal).numpy(), head(normal).numpy()
    np.testing.assert_allclose(first.mean(0), 3.0, atol=0.05)
    np.testing.assert_allclose(first.std(0), 0.5, rtol=0.05)
    assert not np.array_equal(first, second)
    again = stochastic.StochasticSamplingHead(seed=1)(normal)
    np.testing.assert_array_equal(first, again)


def test_independent_normals_are_sampled_like_a_normal_vector():
    loc, scale = tf.constant([[1.0, -2.0]]), tf.constant([[0.5, 2.0]])
    independent = tfp.distributions.Independent(tfp.distributions.Normal(loc, scale), 1)
    vector = tfp.distributions.MultivariateNormalDiag(loc, scale)
    samples, expected = (
        stochastic.StochasticSamplingHead(seed=1)(d) for d in (independent, vector)
    )
    np.testing.assert_allclose(samples, expected, rtol=1e-6)
    seed = tf.constant([1, 2], tf.int64)
    value, log_prob = sampling.sample_and_log_prob(independent, seed)
    np.testing.assert_allclose(log_prob, vector.log_prob(value), rtol=1e-5)


def test_samples_are_the_same_in_plain_and_compiled_graphs():
    def two_calls(jit_compile):
        network = sequential.Sequential(
            [
                distributional.MultivariateNormalDiagHead(2),
                stochastic.StochasticSamplingHead(),
            ],
            tf.TensorSpec([3]),
            seed=0,
        )
        network.create_variables()
        call = tf.function(lambda x: network(x)[0], jit_compile=jit_compile)
        calls = [call(tf.ones([4, 3])) for _ in range(2)]
        assert call.experimental_get_tracing_count() == 1
        return calls

    plain, compiled = two_calls(False), two_calls(True)
    np.testing.assert_allclose(plain, compiled, atol=1e-6)
    assert not np.allclose(plain[0], plain[1])


def test_state_of_the_seeds_is_restored(tmp_path):
    network = sequential.Sequential(
        [
            lambda x: tfp.distributions.Exponential(x),
            stochastic.StochasticSamplingHead(),
        ],
        tf.TensorSpec([3]),
        seed=0,
    )
    rates = tf.ones([2, 3])
    network(rates)
    path = tf.train.Checkpoint(network=network).save(str(tmp_path / "checkpoint"))
    expected = network(rates)[0]
    network(rates)
    tf.train.Checkpoint(network=network).restore(path)
    np.testing.assert_array_equal(network(rates)[0], expected)


def test_approximate_mode_is_the_transformed_mode():
    spec = array_spec.BoundedArraySpec([2], np.float32, -2.0, 4.0)
    normal = tfp.distributions.Independent(tfp.distributions.Normal([[0.3, 9.0]], 1), 1)
    squashed = rescaling.TanhToSpec(spec)(normal)
    with pytest.raises(NotImplementedError):
        squashed.mode()
    distribution = stochastic.ApproximateMode()(squashed)
    np.testing.assert_allclose(
        distribution.mode(), [[1 + 3 * np.tanh(0.3), 4]], rtol=1e-5
    )
    action = [[0.0, 1.0]]
    np.testing.assert_allclose(
        distribution.log_prob(action), squashed.log_prob(action), rtol=1e-5, atol=1e-6
    )
    assert stochastic.ApproximateMode()(normal) is normal


def critic(inputs):
    observation, action = inputs
    return -tf.square(action[:, 0] - observation[:, 0])


@pytest.mark.parametrize("is_distribution", [False, True])
def test_exponential_weights_prefer_what_the_critic_does(is_distribution):
    def actor(observation):
        normal = tfp.distributions.Normal(tf.zeros_like(observation), 1.0)
        return normal if is_distribution else normal.sample(seed=1)

    observation = tf.constant([[-1.0], [0.0], [1.0]] * 100)
    greedy = stochastic.ExpQWeightedPolicy(actor, critic, 1e-3, 64, seed=0)
    assert greedy(observation).shape == [300, 1]
    np.testing.assert_allclose(greedy(observation), observation, atol=0.5)
    # A high temperature leaves the actor's actions as they are.
    uniform = stochastic.ExpQWeightedPolicy(actor, critic, 1e6, 64, seed=0)
    actions = uniform(observation).numpy()
    np.testing.assert_allclose(actions.mean(), 0, atol=0.2)
    np.testing.assert_allclose(actions.std(), 1, atol=0.15)


def test_critics_may_return_distributions():
    policy = stochastic.ExpQWeightedPolicy(
        lambda o: tfp.distributions.Normal(o, 1.0),
        sequential.Sequential(
            [
                lambda inputs: critic(inputs)[:, tf.newaxis],
                distributional.DiscreteValuedHead(-1.0, 1.0, 3),
            ]
        ),
        seed=0,
    )
    assert policy(tf.zeros([5, 1])).shape == [5, 1]


def test_beta_is_above_zero():
    with pytest.raises(ValueError, match="beta: got 0"):
        stochastic.ExpQWeightedPolicy(keras.layers.Dense(1), critic, beta=0)
