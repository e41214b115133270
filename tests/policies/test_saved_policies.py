"""Each kind of policy, saved and loaded, acts as it did."""

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl.networks import actor_distribution_network, network, q_network
from tfrl.policies import (
    actor_policy,
    boltzmann_policy,
    categorical_q_policy,
    epsilon_greedy_policy,
    fixed_policy,
    gaussian_policy,
    greedy_policy,
    policy_info_updater_wrapper,
    policy_loader,
    policy_saver,
    q_policy,
    random_tf_policy,
    temporal_action_smoothing,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = {"x": tf.TensorSpec([4], tf.float32), "m": tf.TensorSpec([3], tf.int32)}
X = OBSERVATION["x"]
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
NESTED = {
    "c": tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
    "d": [tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)],
}
CONTINUOUS = NESTED["c"]
TIME_STEP = ts.time_step_spec(OBSERVATION)


class Atoms(network.Network):
    """Three actions, five atoms, without weights."""

    num_atoms = 5

    def call(self, observation):
        return observation[..., :3, tf.newaxis] * tf.range(5.0), ()


class Memory(network.Network):
    """The values are the sum of what was seen."""

    def __init__(self, input_tensor_spec):
        super().__init__(input_tensor_spec, state_spec={"s": X})

    def call(self, observation, network_state=()):
        total = network_state["s"] + observation
        return total[..., :3], {"s": total}


def split(observation):
    return observation["x"], observation["m"]


def masked(seed=0, **kwargs):
    net = q_network.QNetwork(X, DISCRETE, fc_layer_params=(8,), seed=seed)
    return q_policy.QPolicy(
        TIME_STEP,
        DISCRETE,
        net,
        observation_and_action_constraint_splitter=split,
        **kwargs,
    )


def actor(action_spec=NESTED, **kwargs):
    net = actor_distribution_network.ActorDistributionNetwork(
        X, action_spec, fc_layer_params=(8,), seed=0
    )
    return actor_policy.ActorPolicy(ts.time_step_spec(X), action_spec, net, **kwargs)


def categorical():
    return categorical_q_policy.CategoricalQPolicy(
        TIME_STEP,
        DISCRETE,
        Atoms(X),
        -1.0,
        1.0,
        observation_and_action_constraint_splitter=split,
        temperature=0.5,
    )


def remembering():
    return q_policy.QPolicy(ts.time_step_spec(X), DISCRETE, Memory(X))


def identified():
    return policy_info_updater_wrapper.PolicyInfoUpdaterWrapper(
        remembering(),
        {"id": tf.TensorSpec([], tf.int32)},
        lambda step: {"id": tf.fill(tf.shape(step.action), 7)},
    )


KINDS = {
    "epsilon_greedy": lambda: epsilon_greedy_policy.EpsilonGreedyPolicy(
        masked(emit_log_probability=True), 0.5
    ),
    "boltzmann": lambda: boltzmann_policy.BoltzmannPolicy(masked(), 0.5),
    "categorical": categorical,
    "actor": lambda: actor(emit_log_probability=True),
    "gaussian": lambda: gaussian_policy.GaussianPolicy(actor(CONTINUOUS), 0.1),
    "random": lambda: random_tf_policy.RandomTFPolicy(
        TIME_STEP, NESTED, emit_log_probability=True
    ),
    "fixed": lambda: fixed_policy.FixedPolicy(
        {"c": [0.5, 0.5], "d": [1]}, TIME_STEP, NESTED
    ),
    "stateful_with_info": identified,
}


def steps(policy, num=3, batch=5):
    """Time steps, the first of an episode and what follows, some actions invalid."""
    rng = np.random.default_rng(0)
    for i in range(num):
        x = tf.constant(rng.normal(size=(batch, 4)), tf.float32)
        observation = {"x": x, "m": tf.tile([[1, 0, 1]], [batch, 1])}
        if not isinstance(policy.time_step_spec.observation, dict):
            observation = x
        time_step = ts.transition(observation, tf.zeros([batch]))
        if i == 0:
            time_step = ts.restart(observation, batch_size=batch)
        yield time_step


def assert_equal(one, other):
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, other
    )


# `test_policy_saver.py` saves the others' kinds, too.
@pytest.mark.parametrize(
    "kind", some_slow(KINDS, fast=["gaussian", "stateful_with_info"])
)
def test_a_loaded_policy_acts_as_the_one_saved(kind, tmp_path):
    policy = KINDS[kind]()
    path = str(tmp_path)
    policy_saver.PolicySaver(policy).save(path)
    loaded = tf.saved_model.load(path)
    state, loaded_state = policy.get_initial_state(5), loaded.get_initial_state(5)
    assert_equal(state, loaded_state)
    for i, time_step in enumerate(steps(policy)):
        seed = tf.constant([i, 3], tf.int64)
        expected = policy.action(time_step, state, seed)
        result = loaded.action(time_step, loaded_state, seed)
        assert_equal(result.action, expected.action)
        assert_equal(result.state, expected.state)
        assert_equal(result.info, expected.info)
        state, loaded_state = expected.state, result.state
        if policy.observation_and_action_constraint_splitter is not None:
            assert 1 not in result.action.numpy()


@pytest.mark.slow
def test_a_loaded_policy_runs_on_arrays_with_its_state(tmp_path):
    policy = greedy_policy.GreedyPolicy(
        temporal_action_smoothing.TemporalActionSmoothing(actor(CONTINUOUS), 0.5)
    )
    policy_saver.PolicySaver(policy).save(str(tmp_path))
    loaded = policy_loader.load(str(tmp_path))
    tf.nest.assert_same_structure(loaded.policy_state_spec, policy.policy_state_spec)
    state, loaded_state = policy.get_initial_state(1), loaded.get_initial_state()
    for time_step in steps(policy, batch=1):
        expected = policy.action(time_step, state)
        one = tf.nest.map_structure(lambda t: t[0].numpy(), time_step)
        result = loaded.action(one, loaded_state)
        np.testing.assert_allclose(result.action, expected.action[0], rtol=1e-5)
        state, loaded_state = expected.state, result.state


def test_specs_are_named_by_their_paths():
    named = policy_saver.rename_spec_with_nest_paths({"a": [DISCRETE], "b": X})
    assert named == {
        "a": [tf.TensorSpec([], tf.int64, name="a/0")],
        "b": tf.TensorSpec([4], tf.float32, name="b"),
    }
    assert [spec.name for spec in tf.nest.flatten(named)] == ["a/0", "b"]


def test_outer_dimensions_are_added_before_the_shape():
    spec = tf.TensorSpec([3], tf.float32, name="x")
    batched = policy_saver.add_batch_dim(spec, [None, 2])
    assert batched.shape.as_list() == [None, 2, 3]
    assert batched.name == "x"
