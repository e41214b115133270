"""`ActorPolicy`: distributions or actions from a network."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import actor_distribution_network, network
from tfrl.policies import actor_policy, greedy_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0)
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


class Actor(network.Network):
    """Acts with three times the observation; doubles it in training."""

    def call(self, observation, training=False):
        return observation * (6.0 if training else 3.0), ()


class Remembering(network.Network):
    """Adds up the observations."""

    def __init__(self, input_tensor_spec):
        super().__init__(input_tensor_spec, state_spec=tf.TensorSpec([2], tf.float32))

    def call(self, observation, network_state=()):
        return network_state + observation, network_state + observation


class MaskedActor(network.DistributionNetwork):
    """A categorical distribution over the valid actions, all alike."""

    def __init__(self, input_tensor_spec):
        super().__init__(input_tensor_spec, (), output_spec=None, name=None)

    def call(self, observation, mask=None):
        import tensorflow_probability as tfp

        mask = tf.ones([1, 3]) if mask is None else tf.cast(mask, tf.float32)
        return tfp.distributions.Categorical(logits=1e9 * (mask - 1.0)), ()


class Halving:
    """A normaliser."""

    def normalize(self, observation):
        return observation / 2.0


def step(observation=((0.1, 1.0),)):
    return ts.restart(tf.constant(observation), batch_size=len(observation))


def make(net=None, action_spec=CONTINUOUS, observation=OBSERVATION, **kwargs):
    net = net or Actor(OBSERVATION)
    return actor_policy.ActorPolicy(
        ts.time_step_spec(observation), action_spec, net, **kwargs
    )


def distribution_network(action_spec):
    return actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, action_spec, fc_layer_params=(4,), seed=0
    )


def test_actions_of_the_network_are_clipped_to_the_spec():
    np.testing.assert_allclose(make().action(step()).action, [[0.3, 1.0]], rtol=1e-6)


def test_clipping_can_be_switched_off():
    np.testing.assert_allclose(
        make(clip=False).action(step()).action, [[0.3, 3.0]], rtol=1e-6
    )


def test_an_action_becomes_a_deterministic_distribution():
    distribution = make().distribution(step()).action
    np.testing.assert_allclose(distribution.mode(), [[0.3, 3.0]], rtol=1e-6)


def test_training_reaches_the_network():
    action = make(training=True, clip=False).action(step()).action
    np.testing.assert_allclose(action, [[0.6, 6.0]], rtol=1e-6)


def test_the_normalizer_sees_the_observation_first():
    policy = make(observation_normalizer=Halving())
    np.testing.assert_allclose(policy.action(step()).action, [[0.15, 1.0]], rtol=1e-6)
    assert isinstance(policy.observation_normalizer, Halving)


def test_a_greedy_actor_of_tensors_gives_the_tensors():
    action = greedy_policy.GreedyPolicy(make(clip=False)).action(step()).action
    np.testing.assert_allclose(action, [[0.3, 1.0]], rtol=1e-6)


def test_discrete_actions_have_the_dtype_of_the_spec():
    policy = make(distribution_network(DISCRETE), DISCRETE)
    action = policy.action(step(np.ones((50, 2), np.float32))).action
    assert action.dtype == tf.int32
    assert set(action.numpy()) <= {0, 1, 2}


def test_continuous_actions_stay_within_the_bounds():
    policy = make(distribution_network(CONTINUOUS), CONTINUOUS)
    action = policy.action(step(np.ones((200, 2), np.float32))).action
    assert np.abs(action).max() <= 1.0


def test_log_probability_is_emitted_when_asked_for():
    policy = make(distribution_network(DISCRETE), DISCRETE, emit_log_probability=True)
    result = policy.action(step(), seed=1)
    distribution = policy.distribution(step()).action
    np.testing.assert_allclose(
        result.info.log_probability, distribution.log_prob(result.action), rtol=1e-5
    )


def test_the_state_is_the_networks():
    policy = make(Remembering(OBSERVATION), clip=False)
    assert policy.policy_state_spec == tf.TensorSpec([2], tf.float32)
    first = policy.action(step())
    time_step = ts.transition(step().observation, tf.zeros([1]))
    second = policy.action(time_step, first.state)
    np.testing.assert_allclose(second.action, [[0.2, 2.0]], rtol=1e-6)


def test_the_network_is_given_the_mask():
    observation = {"x": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}
    policy = make(
        MaskedActor(OBSERVATION),
        DISCRETE,
        observation,
        observation_and_action_constraint_splitter=lambda o: (o["x"], o["mask"]),
    )
    observed = {"x": tf.zeros([50, 2]), "mask": tf.tile([[0, 1, 1]], [50, 1])}
    actions = policy.action(ts.restart(observed, batch_size=50)).action
    assert set(actions.numpy()) == {1, 2}


def test_a_mask_for_continuous_actions_is_not_implemented():
    with pytest.raises(NotImplementedError, match="single discrete action spec"):
        make(observation_and_action_constraint_splitter=lambda o: (o, o))


def test_a_network_for_other_actions_is_an_error():
    with pytest.raises(ValueError, match="output does not match action_spec"):
        make(action_spec=tensor_spec.BoundedTensorSpec([3], tf.float32, -1.0, 1.0))


def test_a_plain_keras_model_serves_as_network():
    policy = make(keras.Sequential([keras.layers.Dense(2)]))
    assert policy.action(step()).action.shape == [1, 2]
    assert len(policy.variables()) == 2


def test_something_that_is_no_network_is_a_type_error():
    with pytest.raises(TypeError):
        make(net=lambda observation: observation)


def test_distributions_are_made_for_sequences_too():
    policy = make(distribution_network(DISCRETE), DISCRETE)
    sequence = tf.nest.map_structure(
        lambda t: tf.stack([t] * 4, axis=1), step(np.ones((3, 2), np.float32))
    )
    assert policy.distribution(sequence).action.batch_shape == [3, 4]


def test_several_discrete_actions_have_one_log_probability():
    spec = tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 2)
    policy = make(distribution_network(spec), spec, emit_log_probability=True)
    result = policy.action(step(np.ones((7, 2), np.float32)), seed=1)
    assert result.action.shape == [7, 2]
    distribution = policy.distribution(step(np.ones((7, 2), np.float32))).action
    np.testing.assert_allclose(
        result.info.log_probability,
        tf.reduce_sum(distribution.log_prob(result.action), -1),
        rtol=1e-5,
    )


@pytest.mark.parametrize("spec", [CONTINUOUS, DISCRETE])
def test_an_action_without_distribution_has_log_probability_zero(spec):
    class Zero(network.Network):
        def call(self, observation):
            zeros = tf.zeros_like(observation)
            return tf.cast(zeros if spec.shape.rank else zeros[:, 0], spec.dtype), ()

    policy = make(Zero(OBSERVATION), spec, emit_log_probability=True)
    info = policy.action(step([[1.0, 1.0]] * 3)).info
    np.testing.assert_array_equal(info.log_probability, [0.0] * 3)
