"""Behavioural cloning's losses, against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
FORCE = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
RNG = np.random.default_rng(0)
OBSERVATIONS = RNG.normal(size=[4, 2]).astype(np.float32)
# The third frame is a boundary.
STEP_TYPES = np.array([0, 1, 2, 0], np.int32)
VALID = np.array([1, 1, 0, 1])


def frames(action, outer=(4,)):
    def shaped(x, dtype=tf.float32):
        x = np.asarray(x)
        return tf.constant(x.reshape([*outer, *x.shape[1:]]), dtype)

    return trajectory.Trajectory(
        step_type=shaped(STEP_TYPES, tf.int32),
        observation=shaped(OBSERVATIONS),
        action=shaped(action, tf.as_dtype(np.asarray(action).dtype)),
        policy_info=(),
        next_step_type=shaped([1, 2, 0, 1], tf.int32),
        reward=shaped([0.0] * 4),
        discount=shaped([1.0] * 4),
    )


def make(action_spec, network, optimizer=None, **kwargs):
    return agents.BehavioralCloningAgent(
        ts.time_step_spec(OBSERVATION), action_spec, network, optimizer, **kwargs
    )


CHOICES = np.array([0, 2, 1, 1])
FORCES = np.array([[2.0, 1.0], [-1, 0.5], [0, 0], [1, 0.2]], np.float32)


@pytest.mark.parametrize("outer", [(4,), (2, 2)])
def test_cross_entropy_of_logits(outer):
    network = networks.QNetwork(OBSERVATION, CHOICE, fc_layer_params=(), seed=1)
    agent = make(CHOICE, network, num_outer_dims=len(outer))
    loss, extra = agent.loss(frames(CHOICES, outer))
    logits = network(OBSERVATIONS)[0].numpy()
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -VALID * log_probs[range(4), CHOICES]
    np.testing.assert_allclose(extra.loss, expected.reshape(outer), rtol=1e-5)
    np.testing.assert_allclose(loss, expected.mean(), rtol=1e-5)


def categorical_layer(logits):
    return tfp.distributions.Categorical(logits=logits, dtype=tf.int64)


def index_network():
    """Gives a `Categorical` of the action's index, as TF-Agents' users write it."""
    return networks.Sequential(
        [keras.layers.Dense(3), keras.layers.Lambda(categorical_layer)],
        input_spec=OBSERVATION,
        seed=1,
    )


@pytest.mark.parametrize(
    "make_network",
    [
        lambda spec: networks.QNetwork(OBSERVATION, spec, fc_layer_params=(), seed=1),
        lambda spec: networks.ActorDistributionNetwork(OBSERVATION, spec, (), seed=1),
        lambda spec: index_network(),
    ],
)
@pytest.mark.parametrize(
    "minimum",
    [-2, *(pytest.param(minimum, marks=pytest.mark.slow) for minimum in (0, 1))],
)
def test_actions_may_begin_at_any_number(make_network, minimum):
    """The loss depends on the index of an action, and the policies give the action."""
    spec = tensor_spec.BoundedTensorSpec([], tf.int64, minimum, minimum + 2)
    network = make_network(spec)
    agent = make(spec, network, keras.optimizers.SGD(1.0))
    # A boundary may hold anything.
    recorded = np.where(VALID == 1, CHOICES + minimum, 99)
    output = network(OBSERVATIONS)[0]
    logits = getattr(output, "logits", output).numpy()
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    loss = agent.train(frames(recorded))
    np.testing.assert_allclose(
        loss.extra.loss, -VALID * log_probs[range(4), CHOICES], rtol=1e-5
    )
    assert agent.loss(frames(recorded)).loss < loss.loss
    steps = ts.restart(np.repeat(OBSERVATIONS, 25, axis=0), batch_size=100)
    output = network(OBSERVATIONS)[0]
    best = np.argmax(getattr(output, "logits", output), axis=-1) + minimum
    greedy = agent.policy.action(steps).action
    np.testing.assert_array_equal(greedy, np.repeat(best, 25))
    explored = agent.collect_policy.action(steps, seed=1).action
    assert set(explored.numpy()) <= {minimum, minimum + 1, minimum + 2}


def test_squared_error_of_actions():
    network = networks.ActorNetwork(OBSERVATION, FORCE, (), seed=1)
    loss, extra = make(FORCE, network).loss(frames(FORCES), weights=[1, 2, 1, 0.5])
    error = ((network(OBSERVATIONS)[0].numpy() - FORCES) ** 2).mean(axis=1)
    np.testing.assert_allclose(extra.loss, VALID * error, rtol=1e-5)
    np.testing.assert_allclose(loss, error @ [1, 2, 0, 0.5] / 4, rtol=1e-5)


@pytest.mark.parametrize("kind", [None, "nll", "mse"])
def test_log_density_or_squared_error_of_distributions(kind):
    network = networks.ActorDistributionNetwork(OBSERVATION, FORCE, (), seed=1)
    agent = make(FORCE, network, num_outer_dims=2, loss=kind)
    loss = agent.loss(frames(FORCES, (2, 2))).extra.loss
    normal = network(OBSERVATIONS, step_type=None)[0]
    mean, std = normal.mode().numpy(), normal.stddev().numpy()
    density = np.exp(-(((FORCES - mean) / std) ** 2) / 2) / std / np.sqrt(2 * np.pi)
    expected = -VALID * np.log(density).sum(axis=1)
    if kind == "mse":
        expected = VALID * ((FORCES - mean) ** 2).mean(axis=1)
    np.testing.assert_allclose(loss, expected.reshape([2, 2]), rtol=1e-4)


def test_training_reproduces_the_recorded_actions():
    """A linear network tells three frames apart, and the boundary is left out."""
    network = networks.QNetwork(OBSERVATION, CHOICE, fc_layer_params=(), seed=1)
    agent = make(CHOICE, network, keras.optimizers.SGD(5.0))
    for _ in range(30):
        agent.train(frames(CHOICES))
    step = ts.restart(OBSERVATIONS, batch_size=4)
    chosen = agent.policy.action(step).action.numpy()
    np.testing.assert_array_equal(chosen[VALID == 1], CHOICES[VALID == 1])
    assert int(agent.train_step_counter) == 30
    np.testing.assert_array_equal(agent.diagnose()["learning_rate"], 5)


def test_a_boundary_changes_no_weight():
    network = networks.ActorDistributionNetwork(OBSERVATION, FORCE, (), seed=1)
    agent = make(FORCE, network, keras.optimizers.SGD(1.0))
    before = [v.numpy() for v in agent._cloning_network.variables]
    row = tf.nest.map_structure(lambda t: t[2:3], frames(FORCES))
    assert agent.train(row._replace(action=tf.constant([[np.nan] * 2]))).loss == 0
    for one, other in zip(before, agent._cloning_network.variables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_recurrent_network_sees_the_frames_before():
    network = networks.QRnnNetwork(
        OBSERVATION, CHOICE, input_fc_layer_params=None, lstm_size=(3,),
        output_fc_layer_params=None, seed=1,
    )  # fmt: skip
    agent = make(CHOICE, network, num_outer_dims=2)
    whole, single = (
        agent.loss(frames(CHOICES, outer)).extra.loss.numpy().ravel()
        for outer in ((1, 4), (4, 1))
    )
    # The first and the last frame are the first of an episode.
    np.testing.assert_allclose(whole[[0, 3]], single[[0, 3]], rtol=1e-5)
    assert abs(whole[1] - single[1]) > 1e-5


def test_a_recurrent_network_of_single_frames_starts_from_its_initial_state():
    network = networks.QRnnNetwork(OBSERVATION, CHOICE, lstm_size=(3,), seed=1)
    sequences = make(CHOICE, network, num_outer_dims=2)
    with pytest.warns(UserWarning, match=r"learns no memory; give num_outer_dims=2"):
        agent = make(CHOICE, network, num_outer_dims=1)
    np.testing.assert_allclose(
        agent.loss(frames(CHOICES)).loss,
        sequences.loss(frames(CHOICES, (4, 1))).loss,
        rtol=1e-5,
    )


def test_several_actions_without_distributions_need_a_loss():
    spec = {"choice": CHOICE, "force": FORCE}
    forces = networks.ActorNetwork(OBSERVATION, {"a": FORCE, "b": FORCE}, (), seed=1)
    with pytest.raises(ValueError, match="loss_fn: got None for the action_spec"):
        make({"a": FORCE, "b": FORCE}, forces)
    network = networks.ActorDistributionNetwork(OBSERVATION, spec, (), seed=1)

    def loss_fn(output, action):
        return -output["choice"].log_prob(action["choice"])

    agent = make(spec, network, loss_fn=loss_fn)
    both = frames(CHOICES)._replace(
        action={"choice": tf.constant(CHOICES), "force": tf.constant(FORCES)}
    )
    assert agent.loss(both).extra.loss.shape == [4]


def test_a_loss_that_takes_training_is_called_as_tf_agents_calls_it():
    calls = []

    def loss_fn(experience, training=False):
        calls.append(training)
        values, _ = agent.cloning_network(
            experience.observation, step_type=experience.step_type, training=training
        )
        errors = tf.square(tf.reduce_max(values, axis=-1) - experience.reward)
        return errors + tf.cast(experience.action, tf.float32)

    network = networks.QNetwork(OBSERVATION, CHOICE, fc_layer_params=(), seed=1)
    agent = make(CHOICE, network, keras.optimizers.SGD(0.0), loss_fn=loss_fn)
    assert agent.cloning_network is network
    loss = agent.loss(frames(CHOICES)).extra.loss
    np.testing.assert_array_equal(agent.train(frames(CHOICES)).extra.loss, loss)
    assert calls == [False, True]
    best = network(OBSERVATIONS)[0].numpy().max(axis=1)
    np.testing.assert_allclose(loss, VALID * (best**2 + CHOICES), rtol=1e-5)


def test_logits_have_to_fit_the_actions():
    wide = tensor_spec.BoundedTensorSpec([], tf.int64, 1, 4)
    network = keras.layers.Dense(3)
    with pytest.raises(ValueError, match=r"inner dims \(4,\)"):
        make(wide, network)
    pair = tensor_spec.BoundedTensorSpec([2], tf.int64, 0, 2)
    with pytest.raises(ValueError, match="only scalar actions"):
        make(pair, network)


@pytest.mark.parametrize(
    ("spec", "network", "arguments", "message"),
    [
        (CHOICE, networks.QNetwork, {"loss": "mse"}, "'mse', expected one of \\['nll"),
        (FORCE, networks.ActorNetwork, {"loss": "nll"}, "'nll', expected one of \\['m"),
        (FORCE, networks.ActorNetwork, {"loss": "huber"}, "loss: got 'huber'"),
        (
            FORCE,
            networks.ActorNetwork,
            {"loss": "mse", "loss_fn": lambda output, action: output},
            "got 'mse' and a loss_fn",
        ),
    ],
)
def test_wrong_losses_are_refused(spec, network, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(spec, network(OBSERVATION, spec), **arguments)
