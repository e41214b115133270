"""The layers that a Q-network may have, and the inputs that it may get."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.networks import q_network, sequential, test_utils
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import common

MID = 1
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
BOTH = pytest.mark.parametrize("kind", [dqn_agent.DqnAgent, dqn_agent.DdqnAgent])


def dense(**kwargs):
    return keras.layers.Dense(2, kernel_initializer="ones", **kwargs)


def make(layers, kind=dqn_agent.DqnAgent, learning_rate=0.1, **kwargs):
    agent = kind(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        sequential.Sequential(layers, input_spec=OBSERVATION),
        keras.optimizers.SGD(learning_rate),
        td_errors_loss_fn=common.element_wise_squared_loss,
        **kwargs,
    )
    agent.initialize()
    return agent


def frames(observation, next_observation, reward=0.0, discount=1.0, **fields):
    """One transition `[1, 2, ...]` of action 0."""
    result = trajectory.Trajectory(
        step_type=tf.fill([1, 2], MID),
        observation=tf.constant([[observation, next_observation]]),
        action=tf.zeros([1, 2], tf.int32),
        policy_info=(),
        next_step_type=tf.fill([1, 2], MID),
        reward=tf.fill([1, 2], reward),
        discount=tf.fill([1, 2], discount),
    )
    return result._replace(**fields)


@BOTH
def test_dropout_drops_in_training_alone_and_not_from_targets(kind):
    agent = make([keras.layers.Dropout(0.5, seed=1), dense()], kind)
    experience = frames([1.0, 1.0], [2.0, 2.0])
    assert agent.loss(experience).extra.td_error == 2
    # Q(s) is the sum of two ones, each dropped or doubled.
    errors = {
        float(agent.loss(experience, training=True).extra.td_error[0])
        for _ in range(20)
    }
    assert errors == {4.0, 2.0, 0.0}


@BOTH
def test_batch_normalisation_learns_its_statistics_in_training_alone(kind):
    layer = keras.layers.BatchNormalization(momentum=0.5)
    agent = make([layer, dense()], kind)
    experience = frames([1.0, 3.0], [20.0, 20.0])
    agent.loss(experience)
    agent.policy.action(ts.restart(tf.ones([1, 2]), 1))
    np.testing.assert_array_equal(layer.moving_mean, [0, 0])
    agent.train(experience)
    # Of the current observations, not of the next ones.
    np.testing.assert_array_equal(layer.moving_mean, [0.5, 1.5])


@BOTH
def test_penalty_on_activities_is_that_of_the_current_step(kind):
    agent = make([dense(activity_regularizer=keras.regularizers.L1(0.5))], kind)
    loss = agent.loss(frames([1.0, 1.0], [0.5, 1.5]))
    # Both Q-values are 2, and so is the next one; Keras divides by the batch size.
    assert loss.extra.td_loss == 0
    np.testing.assert_array_equal(loss.loss, 0.5 * (2 + 2))
    other = agent.loss(frames([1.0, 1.0], [30.0, 30.0], discount=0.0))
    np.testing.assert_array_equal(other.loss - other.extra.td_loss, 0.5 * (2 + 2))


def test_weight_decay_shrinks_weights_that_have_no_error():
    agent = make([dense(kernel_regularizer=keras.regularizers.L2(1.0))])
    loss = agent.train(frames([0.0, 0.0], [0.0, 0.0]))
    # Four ones, squared; their gradient is 2.
    assert float(loss.loss) == 4
    np.testing.assert_allclose(agent.variables()[0], np.full([2, 2], 0.8), rtol=1e-6)


@BOTH
def test_training_data_may_differ_from_the_collected_data(kind):
    data_spec = make([dense()]).collect_data_spec
    info = {"extra": tf.TensorSpec([], tf.float32)}
    agent = make(
        [dense()], kind, training_data_spec=data_spec._replace(policy_info=info)
    )
    assert agent.collect_data_spec.policy_info == ()
    experience = frames([1.0, 1.0], [2.0, 2.0], policy_info={"extra": tf.ones([1, 2])})
    assert agent.loss(experience).extra.td_error == 2
    with pytest.raises((TypeError, ValueError), match=r"experience: "):
        agent.loss(experience._replace(policy_info=()))


@BOTH
def test_layer_that_copies_share_cannot_have_a_target(kind):
    network = test_utils.KerasLayersNet(OBSERVATION, ACTION, dense())
    with pytest.raises(ValueError, match="no trainable variables in common"):
        kind(
            ts.time_step_spec(OBSERVATION),
            ACTION,
            network,
            keras.optimizers.SGD(0.1),
        )


@BOTH
def test_agent_without_an_optimizer_acts_and_gives_its_loss(kind):
    network = sequential.Sequential([dense()], input_spec=OBSERVATION)
    agent = kind(ts.time_step_spec(OBSERVATION), ACTION, network, None)
    agent.initialize()
    experience = frames([1.0, 1.0], [2.0, 2.0])
    assert agent.loss(experience).extra.td_error == 2
    assert agent.policy.action(ts.restart(tf.ones([3, 2]), 3)).action.shape == (3,)
    with pytest.raises(ValueError, match="optimizer: got None"):
        agent.train(experience)
    assert int(agent.train_step_counter) == 0


class Combine(keras.layers.Layer):
    """Concatenates a dense and a sparse input, the latter times its weights."""

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(4, 2), initializer="ones")

    def call(self, inputs):
        values, terms = inputs
        product = tf.sparse.sparse_dense_matmul(terms, self.kernel.value)
        return tf.concat([values, product], axis=-1)


def test_sparse_observations_are_learned_from():
    spec = {
        "dense": tf.TensorSpec([2], tf.float32),
        "terms": tf.SparseTensorSpec([4], tf.float32),
    }
    network = q_network.QNetwork(
        spec, ACTION, preprocessing_combiner=Combine(), fc_layer_params=(), seed=0
    )
    agent = dqn_agent.DqnAgent(
        ts.time_step_spec(spec), ACTION, network, keras.optimizers.SGD(0.1)
    )
    agent.initialize()
    terms = np.zeros([3, 2, 4], np.float32)
    terms[:, :, 1] = 1
    observation = {
        "dense": tf.ones([3, 2, 2]),
        "terms": tf.sparse.from_dense(terms),
    }
    step = ts.restart(observation, batch_size=[3, 2])
    actions = policy_step.PolicyStep(tf.zeros([3, 2], tf.int32))
    # With a reward the error, and so the gradient, is not near 0 with any weights.
    after = step._replace(reward=tf.ones([3, 2]))
    experience = trajectory.from_transition(step, actions, after)
    kernel = network.variables[0]
    assert np.isfinite(agent.train(experience).loss)
    rows = np.any(kernel.numpy() != 1, axis=-1)
    np.testing.assert_array_equal(rows, [False, True, False, False])
    one = {"dense": tf.ones([1, 2]), "terms": tf.sparse.from_dense(terms[:1, 0])}
    assert agent.policy.action(ts.restart(one, batch_size=1)).action.shape == (1,)
    unknown = tf.SparseTensorSpec([None, None, 4], tf.float32)
    in_graph = tf.function(
        lambda values, terms: network({"dense": values, "terms": terms})[0],
        input_signature=[tf.TensorSpec([None, None, 2]), unknown],
    )
    assert in_graph(*observation.values()).shape == (3, 2, 2)


@BOTH
@pytest.mark.parametrize(
    "reward",
    [
        tf.TensorSpec([2], tf.float32),
        tf.TensorSpec([1], tf.float32),
        {"speed": tf.TensorSpec([], tf.float32)},
        array_spec.ArraySpec([2], np.float32),
    ],
)
def test_reward_has_to_be_one_scalar(kind, reward):
    observation = (
        array_spec.ArraySpec([2], np.float32)
        if isinstance(reward, array_spec.ArraySpec)
        else OBSERVATION
    )
    with pytest.raises(
        ValueError,
        match=r"time_step_spec.reward: DQN expects one scalar reward a step, got .*"
        r"TensorSpec\(.*; add up its parts, .* in an environment wrapper whose "
        r"reward_spec\(\) is a scalar",
    ):
        kind(
            ts.time_step_spec(observation, reward),
            ACTION,
            keras.layers.Dense(2),
            keras.optimizers.SGD(0.1),
        )


def test_a_model_of_ones_own_without_arguments_is_a_q_network():
    class OwnModel(keras.Model):
        def __init__(self):
            super().__init__()
            self.out = dense(use_bias=False)

        def call(self, inputs):
            return self.out(inputs)

    agent = dqn_agent.DqnAgent(
        ts.time_step_spec(OBSERVATION), ACTION, OwnModel(), keras.optimizers.SGD(0.1)
    )
    agent.initialize()
    # Q(s) = 1 + 1, and the target network, a copy, has gamma * Q(s') = 3 + 1.
    assert agent.loss(frames([1.0, 1.0], [3.0, 1.0])).extra.td_error == 2
