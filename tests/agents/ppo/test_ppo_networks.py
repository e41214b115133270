"""The initialisation of the networks that are made for PPO."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.agents.ppo import ppo_actor_network, ppo_networks
from tfrl.specs import tensor_spec

OBSERVATION = tf.TensorSpec([4], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
FORCE = tensor_spec.BoundedTensorSpec([3], tf.float32, -2, 2)


def kernels(network):
    network.create_variables()
    return [v.numpy() for v in network.trainable_variables if v.name == "kernel"]


def check_orthogonal(kernel, gain):
    small = (
        kernel.T @ kernel if kernel.shape[0] > kernel.shape[1] else kernel @ kernel.T
    )
    np.testing.assert_allclose(small, gain**2 * np.eye(len(small)), atol=1e-5)


@pytest.mark.parametrize("action_spec", [CHOICE, FORCE], ids=["choice", "force"])
def test_kernels_are_orthogonal(action_spec):
    actor, critic = ppo_networks.create_networks(OBSERVATION, action_spec, seed=1)
    for network, last in ((actor, 0.01), (critic, 1.0)):
        gains = [2**0.5, 2**0.5, last]
        for kernel, gain in zip(kernels(network), gains, strict=True):
            check_orthogonal(kernel, gain)
    assert not np.allclose(kernels(actor)[0], kernels(critic)[0])
    assert [k.shape for k in kernels(critic)] == [(4, 64), (64, 64), (64, 1)]


def test_normal_actions_have_means_near_0_and_deviations_of_1():
    actor, _ = ppo_networks.create_networks(OBSERVATION, FORCE, seed=1)
    distribution, _ = actor(tf.constant([[1.0, -2, 30, 4]]))
    np.testing.assert_allclose(distribution.stddev(), np.ones([1, 3]), rtol=1e-6)
    assert np.abs(distribution.mean()).max() < 0.1


def test_the_deviation_of_normal_actions_starts_where_it_is_asked_to():
    actor, _ = ppo_networks.create_networks(
        OBSERVATION, FORCE, initial_log_stddev=-2.0, seed=1
    )
    distribution, _ = actor(tf.constant([[1.0, -2, 30, 4]]))
    np.testing.assert_allclose(distribution.stddev(), [3 * [np.exp(-2)]], rtol=1e-6)


def test_state_dependent_noise_has_the_variance_of_a_random_matrix():
    actor, _ = ppo_networks.create_networks(
        OBSERVATION,
        FORCE,
        (5,),
        initial_log_stddev=-1.0,
        state_dependent_noise=True,
        seed=1,
    )
    hidden, means = kernels(actor)
    check_orthogonal(hidden, 2**0.5)
    check_orthogonal(means, 0.01)
    observation = np.array([[1.0, -2, 3, 4]])
    distribution, _ = actor(tf.constant(observation, tf.float32))
    features = np.tanh(observation @ hidden)
    # Normal, not squashed, like the actions without such noise.
    np.testing.assert_allclose(distribution.mean(), features @ means, atol=1e-5)
    deviation = np.exp(-1) * np.sqrt(np.sum(features**2))
    np.testing.assert_allclose(distribution.stddev(), [3 * [deviation]], rtol=1e-4)


@processors.multiplies_in_half_precision
@pytest.mark.parametrize("action_spec", [CHOICE, FORCE], ids=["choice", "force"])
def test_mixed_precision_is_of_the_hidden_layers(action_spec):
    observations = tf.constant([[1.0, -2, 3, 4]])
    results = []
    for dtype in ("mixed_bfloat16", "float32"):
        actor, critic = ppo_networks.create_networks(
            OBSERVATION, action_spec, dtype=dtype, seed=1
        )
        distribution, _ = actor(observations)
        likely = distribution.log_prob(distribution.mode())
        results.append((likely, critic(observations)[0]))
        for network in (actor, critic):
            assert {v.dtype for v in network.trainable_variables} == {"float32"}
    ours, theirs = results
    assert {tensor.dtype for tensor in ours} == {tf.float32}
    # bfloat16 has a precision of 2^-8.
    np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.02)
    assert ours[1] != theirs[1]


def test_images_are_convolved():
    image = tensor_spec.BoundedTensorSpec([8, 8, 1], tf.uint8, 0, 255)
    actor, critic = ppo_networks.create_networks(
        image, CHOICE, (16,), conv_layer_params=[(4, 3, 2)], seed=1
    )
    frames = tf.cast(tf.fill([2, 8, 8, 1], 255), tf.uint8)
    assert actor(frames)[0].logits.shape == (2, 3)
    # Bright pixels are ones, so the activations stay small.
    assert np.abs(critic(frames)[0]).max() < 10


def test_the_sequential_actor_gives_actions_of_batches_and_sequences():
    made = ppo_actor_network.PPOActorNetwork()
    network, same = (made.create_sequential_actor_net((8,), FORCE, 3) for _ in "ab")
    network.create_variables(OBSERVATION)
    same.create_variables(OBSERVATION)
    inputs = np.random.default_rng(0).normal(size=[5, 2, 4]).astype(np.float32)
    whole, _ = network(tf.constant(inputs))
    assert whole.batch_shape == (5, 2)
    step, _ = same(tf.constant(inputs[:, 1]))
    np.testing.assert_allclose(whole.mean()[:, 1], step.mean(), rtol=1e-5)
    np.testing.assert_allclose(step.stddev(), np.full([5, 3], 0.35), rtol=1e-5)
    assert np.abs(whole.mean()).max() <= 2
    check_orthogonal(kernels(network)[0], 1.0)
    assert isinstance(network.layers[0], keras.layers.Dense)


@pytest.mark.parametrize("after", [(), (5,)])
def test_recurrent_networks_have_an_lstm_between_the_same_layers(after):
    actor, critic = ppo_networks.create_networks(
        OBSERVATION,
        FORCE,
        fc_layer_params=(8,),
        lstm_size=(6,),
        output_fc_layer_params=after,
        seed=1,
    )
    for network, last in ((actor, 0.01), (critic, 1.0)):
        first, lstm, *others, end = kernels(network)
        for kernel in (first, *others):
            check_orthogonal(kernel, 2**0.5)
        check_orthogonal(end, last)
        assert (first.shape, lstm.shape) == ((4, 8), (8, 24))
        assert [kernel.shape for kernel in others] == [(6, units) for units in after]
        assert len(end) == (*after, 6)[0]
        assert [tuple(spec.shape) for spec in network.state_spec] == [(6,), (6,)]
    distribution, _ = actor(tf.constant([[1.0, -2, 30, 4]]))
    np.testing.assert_allclose(distribution.stddev(), np.ones([1, 3]), rtol=1e-6)


@pytest.mark.parametrize("lstm_size", [None, (6,)], ids=["forward", "recurrent"])
def test_an_actor_and_a_critic_may_share_the_layers_before_their_heads(lstm_size):
    actor, critic = ppo_networks.create_networks(
        OBSERVATION, CHOICE, (8, 7), lstm_size=lstm_size, share_layers=True, seed=1
    )
    of_actor, of_critic = kernels(actor), kernels(critic)
    for kernel, gain in zip(of_actor[:2], 2 * [2**0.5], strict=True):
        check_orthogonal(kernel, gain)
    check_orthogonal(of_actor[-1], 0.01)
    check_orthogonal(of_critic[-1], 1.0)
    units = lstm_size[0] if lstm_size else 7
    assert [k.shape for k in of_actor[:2]] == [(4, 8), (8, 7)]
    assert (of_actor[-1].shape, of_critic[-1].shape) == ((units, 3), (units, 1))
    shared = {id(v) for v in actor.variables} & {id(v) for v in critic.variables}
    assert len(shared) == 4
    assert len(of_actor) == len(of_critic) == (4 if lstm_size else 3)


def test_layers_after_an_lstm_need_one():
    with pytest.raises(ValueError, match="output_fc_layer_params: got"):
        ppo_networks.create_networks(OBSERVATION, FORCE, output_fc_layer_params=(5,))


@pytest.mark.parametrize("dtype", [tf.bfloat16, "float16"])
def test_variables_in_half_precision_are_refused(dtype):
    with pytest.raises(ValueError, match=r"dtype: got .* use 'mixed_b?float16'"):
        ppo_networks.create_networks(OBSERVATION, FORCE, dtype=dtype)


def test_numbers_are_squashed_into_the_bounds_of_a_spec():
    spec = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2, 0], [2, 10])
    squashed = ppo_actor_network.tanh_and_scale_to_spec(
        tf.constant([[0.0, 0.5], [99.0, -99.0]]), spec
    )
    expected = [[0.0, 5 + 5 * np.tanh(0.5)], [2.0, 0.0]]
    np.testing.assert_allclose(squashed, expected, rtol=1e-6, atol=1e-6)
