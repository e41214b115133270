"""An observation network that an actor and a critic share, worked by hand in DDPG."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.agents import observation_embedding
from tfrl.policies import policy_saver
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -50, 50)
TIME_STEP = ts.time_step_spec(OBSERVATION)


def linear(kernel):
    """A layer whose output is the input times `kernel`."""
    return keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(kernel), use_bias=False
    )


def critic(of_embedding, of_action):
    """A network with the value `of_embedding * e + of_action * a`."""
    net = networks.CriticNetwork((OBSERVATION, ACTION))
    net.create_variables()
    net.variables[0].assign([[of_embedding], [of_action]])
    return net


def make_agent(target_kernel=3.0, **kwargs):
    """An agent with the embeddings 2 o, and `target_kernel` o of the target."""
    arguments = {
        "actor_network": linear(0.5),
        "critic_network": critic(1.0, 2.0),
        "target_actor_network": linear(-0.25),
        "target_critic_network": critic(3.0, 1.0),
        "actor_optimizer": keras.optimizers.SGD(0.1),
        "critic_optimizer": keras.optimizers.SGD(0.1),
        "td_errors_loss_fn": tf.math.squared_difference,
        "gamma": 0.9,
        "observation_network": linear(2.0),
        **kwargs,
    }
    agent = agents.DdpgAgent(TIME_STEP, ACTION, **arguments)
    ((_, target),) = agent._embedding.target_pairs
    target.variables[0].assign([[target_kernel]])
    return agent


def transitions(observations=(1, 2, 1), next_observations=(2, 4, -2)):
    """A transition, a termination and a truncation."""
    column = lambda values: tf.constant(values, tf.float32)[:, tf.newaxis]  # noqa: E731
    zeros = tf.zeros([3])
    return trajectory.Transition(
        ts.TimeStep(tf.constant([0, 1, 1]), zeros, zeros, column(observations)),
        policy_step.PolicyStep(column([0.5, -1, 1])),
        ts.TimeStep(
            tf.constant([1, 2, 2]),
            tf.constant([1.0, 3.0, 0.0]),
            tf.constant([1.0, 0.0, 1.0]),
            column(next_observations),
        ),
    )


# The next steps' embeddings are 3 o, and Q' = 3 e - 0.25 e: 16.5 and -16.5 where it
# counts. The values of the actions taken are 2 o + 2 a: 3, 2 and 4.
ERRORS = np.array([1 + 0.9 * 16.5 - 3, 3 - 2, -0.9 * 16.5 - 4])


def test_losses_worked_by_hand():
    info = make_agent().loss(transitions())
    np.testing.assert_allclose(info.extra.td_error, ERRORS, rtol=1e-5)
    # The actor sees the target's embeddings e = 3 o, and Q(e, mu(e)) = e + 2 * 0.5 e.
    np.testing.assert_allclose(info.extra.actor_loss, -(6 + 12 + 6) / 3, rtol=1e-6)


def test_the_critics_loss_alone_trains_the_network():
    agent = make_agent(target_update_period=10)
    agent.train(transitions())
    ((network, target),) = agent._embedding.target_pairs
    # Q = 2 o + 2 a changes by o with the kernel.
    slope = -2 * (ERRORS * np.array([1, 2, 1])).mean()
    np.testing.assert_allclose(network.variables[0], [[2 - 0.1 * slope]], rtol=1e-5)
    np.testing.assert_array_equal(target.variables[0], [[3.0]])

    agent = make_agent(critic_optimizer=keras.optimizers.SGD(0.0))
    agent.train(transitions())
    ((network, target),) = agent._embedding.target_pairs
    np.testing.assert_array_equal(network.variables[0], [[2.0]])
    # By default the targets are copied after each update.
    np.testing.assert_array_equal(target.variables[0], [[2.0]])
    # The actor did learn: dQ/da is 2, and d mu / dk is the target's embedding, 3 o.
    np.testing.assert_allclose(
        agent._actor_network.variables[0], [[0.5 + 0.1 * 2 * 3 * 4 / 3]], rtol=1e-5
    )


@pytest.mark.slow
def test_policies_see_embeddings_also_when_saved(tmp_path):
    agent = make_agent(ou_stddev=0.0)
    time_step = ts.restart(tf.constant([[1.0], [-2.0]]), batch_size=2)
    expected = [[1.5], [-3.0]]
    for policy in (agent.policy, agent.collect_policy):
        np.testing.assert_array_equal(policy.action(time_step).action, expected)
    policy_saver.PolicySaver(agent.policy, seed=0).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.action(time_step).action, expected)


def test_observations_are_normalized_before_the_network():
    normalizer = StreamingTensorNormalizer(OBSERVATION)
    normalizer.update(tf.constant([[10.0], [30.0], [20.0]]), [0])
    raw = np.array([[[10.0], [22.0], [15.0]], [[20.0], [30.0], [26.0]]])
    seen = normalizer.normalize(tf.constant(raw, tf.float32)).numpy()
    agent = make_agent(observation_normalizer=normalizer)
    info = agent.loss(transitions(*raw[..., 0]))
    expected = make_agent().loss(transitions(*seen[..., 0]))
    np.testing.assert_allclose(info.extra.td_error, expected.extra.td_error, rtol=1e-5)
    np.testing.assert_allclose(info.loss, expected.loss, rtol=1e-5)
    action = agent.policy.action(ts.restart(tf.constant([[22.0]]), 1)).action
    np.testing.assert_allclose(action, 1.5 * seen[0, 1:2], rtol=1e-6)


def make_soft_agent(**kwargs):
    """A SAC agent with the embeddings 2 o, and 3 o of the target."""
    embedded = networks.ActorDistributionNetwork(
        OBSERVATION,
        ACTION,
        fc_layer_params=(),
        continuous_projection_net=agents.sac.TanhNormalProjectionNetwork,
        seed=1,
    )
    agent = agents.SacAgent(
        TIME_STEP,
        ACTION,
        critic(1.0, 2.0),
        embedded,
        *(keras.optimizers.SGD(0.1) for _ in range(3)),
        critic_network_2=critic(1.0, 2.0 + 1e-6),
        critic_loss_weight=1.0,
        observation_network=linear(2.0),
        target_update_period=10,
        seed=0,
        **kwargs,
    )
    ((_, target),) = agent._embedding.target_pairs
    target.variables[0].assign([[3.0]])
    return agent


def test_a_soft_agents_critics_train_the_network():
    agent = make_soft_agent()
    ((network, target),) = agent._embedding.target_pairs
    # Both critics' values are 2 o + 2 a, and change by o with the kernel.
    errors = agent.loss(transitions()).extra.td_error.numpy()
    agent.train(transitions())
    slope = 2 * -2 * (errors * np.array([1, 2, 1])).mean()
    np.testing.assert_allclose(network.variables[0], [[2 - 0.1 * slope]], rtol=1e-4)
    np.testing.assert_array_equal(target.variables[0], [[3.0]])
    assert any(v is network.variables[0].value for v in agent.variables())
    assert set(agent.diagnose(transitions())) >= {"q_value", "entropy", "alpha"}


def test_a_soft_agents_policy_and_losses_see_the_targets_embeddings():
    agent = make_soft_agent(greedy_eval=True)
    seen = agent._actor_network(tf.constant([[3.0], [-6.0]]))[0].mode()
    time_step = ts.restart(tf.constant([[1.0], [-2.0]]), batch_size=2)
    np.testing.assert_allclose(agent.policy.action(time_step).action, seen, rtol=1e-6)
    embedded = agent._embedding.target(time_step)
    distribution = agent._policies[False].distribution(embedded).action
    np.testing.assert_allclose(distribution.mode(), seen, rtol=1e-6)


def test_images_in_sequences():
    """The network sees `[B * T, ...]`, whatever the layers behind it see."""
    spec = tf.TensorSpec([4, 4, 1], tf.float32)
    embedding = observation_embedding.ObservationEmbedding(
        keras.Sequential([keras.layers.Conv2D(2, 3), keras.layers.Flatten()]), spec
    )
    assert embedding.spec == tf.TensorSpec([8], tf.float32)
    images = tf.random.stateless_uniform([3, 5, 4, 4, 1], seed=[1, 2])
    steps = ts.restart(images, batch_size=3)
    seen = embedding.target(steps).observation
    assert seen.shape == (3, 5, 8)
    single = embedding.target(steps._replace(observation=images[:, 2])).observation
    np.testing.assert_allclose(seen[:, 2], single, atol=1e-6)


def test_networks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="expected a network without state"):
        make_agent(
            observation_network=networks.LSTMEncodingNetwork(
                OBSERVATION, lstm_size=(3,)
            )
        )
    with pytest.raises(ValueError, match="expected tensors as output"):
        make_agent(
            observation_network=networks.ActorDistributionNetwork(OBSERVATION, ACTION)
        )
