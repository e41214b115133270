"""Policies of recurrent networks: who keeps the state, and when it is reset."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents import DqnAgent
from tfrl.drivers import DynamicEpisodeDriver, DynamicStepDriver, PyDriver
from tfrl.environments import TFPyEnvironment, suite_gym
from tfrl.eval import Evaluator
from tfrl.networks import ActorDistributionRnnNetwork, QRnnNetwork, Sequential
from tfrl.policies import (
    ActorPolicy,
    BoltzmannPolicy,
    EpsilonGreedyPolicy,
    GreedyPolicy,
    PolicySaver,
    PyTFEagerPolicy,
    QPolicy,
    SavedModelPyTFEagerPolicy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import StepType, TimeStep
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1)
TIME_STEP = ts.time_step_spec(OBSERVATION)
SMALL = {
    "input_fc_layer_params": None,
    "output_fc_layer_params": None,
    "seed": 0,
    "activation_fn": "tanh",
}
NETWORKS = {
    "lstm": lambda: QRnnNetwork(OBSERVATION, ACTION, lstm_size=(3,), **SMALL),
    "stack": lambda: QRnnNetwork(OBSERVATION, ACTION, lstm_size=(3, 2), **SMALL),
    "gru": lambda: QRnnNetwork(
        OBSERVATION,
        ACTION,
        rnn_construction_fn=keras.layers.GRUCell,
        rnn_construction_kwargs={"units": 3},
        **SMALL,
    ),
    "sequential": lambda: Sequential(
        [
            keras.layers.LSTM(3, return_state=True, return_sequences=True),
            keras.layers.GRUCell(2),
            keras.layers.Dense(2),
        ],
        OBSERVATION,
        seed=0,
    ),
}


def make(kind):
    return QPolicy(TIME_STEP, ACTION, NETWORKS[kind]())


every_network = pytest.mark.parametrize("kind", list(NETWORKS))
list_and_tuple_states = pytest.mark.parametrize("kind", ["lstm", "sequential"])


def steps(step_types, seed=0):
    size = len(step_types)
    observation = np.random.default_rng(seed).normal(size=[size, 4])
    return TimeStep(
        tf.constant(step_types, tf.int32),
        tf.zeros([size]),
        tf.ones([size]),
        tf.constant(observation, tf.float32),
    )


def assert_equal(states, others):
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), states, others
    )


def rows(nest, index):
    return tf.nest.map_structure(lambda t: t[index], nest)


@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        *[(kind, GreedyPolicy) for kind in NETWORKS],
        ("lstm", BoltzmannPolicy),
        ("lstm", lambda policy: EpsilonGreedyPolicy(policy, epsilon=0.5)),
    ],
)
def test_the_state_is_reset_where_a_step_is_first_and_only_there(kind, wrap):
    policy = wrap(make(kind))
    middle = steps([StepType.MID] * 3)
    state = policy.action(middle, policy.get_initial_state(3), seed=1).state
    tf.nest.assert_same_structure(state, policy.policy_state_spec)
    mixed = steps([StepType.FIRST, StepType.MID, StepType.LAST], seed=1)
    got = policy.action(mixed, state, seed=2).state
    fresh = policy.action(mixed, policy.get_initial_state(3), seed=2).state
    kept = policy.action(
        mixed._replace(step_type=tf.fill([3], StepType.MID)), state, seed=2
    ).state
    assert_equal(rows(got, 0), rows(fresh, 0))
    assert_equal(rows(got, slice(1, 3)), rows(kept, slice(1, 3)))
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(fresh), strict=True):
        assert np.abs(a - b)[1:].max() > 1e-4


@every_network
def test_no_state_is_the_initial_state(kind):
    policy = GreedyPolicy(make(kind))
    step = steps([StepType.MID] * 2)
    assert_equal(
        policy.action(step).state,
        policy.action(step, policy.get_initial_state(2)).state,
    )


def test_distributions_of_a_sequence_are_those_of_its_steps():
    actor = ActorDistributionRnnNetwork(OBSERVATION, ACTION, lstm_size=(3,), **SMALL)
    policy = ActorPolicy(TIME_STEP, ACTION, actor)
    types = [StepType.FIRST, StepType.MID, StepType.LAST, StepType.FIRST, StepType.MID]
    sequence = tf.nest.map_structure(lambda t: t[tf.newaxis], steps(types))
    state = policy.get_initial_state(1)
    together = policy.distribution(sequence, state).action.logits[0]
    for t in range(5):
        step = policy.distribution(
            tf.nest.map_structure(lambda x, t=t: x[:, t], sequence), state
        )
        state = step.state
        np.testing.assert_allclose(step.action.logits[0], together[t], atol=1e-6)


@pytest.mark.slow
@list_and_tuple_states
def test_a_saved_policy_acts_with_its_state_as_the_live_one(kind, tmp_path):
    policy = GreedyPolicy(make(kind))
    PolicySaver(policy).save(tmp_path / "policy")
    loaded = tf.saved_model.load(tmp_path / "policy")
    types = [[StepType.FIRST] * 2, [StepType.MID] * 2, [StepType.FIRST, StepType.MID]]
    state, ours = loaded.get_initial_state(2), policy.get_initial_state(2)
    for seed, step_type in enumerate(types):
        step = steps(step_type, seed)
        result, expected = loaded.action(step, state), policy.action(step, ours)
        np.testing.assert_array_equal(result.action, expected.action)
        state, ours = result.state, expected.state
        for a, b in zip(tf.nest.flatten(state), tf.nest.flatten(ours), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.slow
@list_and_tuple_states
def test_a_saved_policy_can_be_evaluated_and_acts_in_python(kind, tmp_path):
    policy = GreedyPolicy(make(kind))
    PolicySaver(policy).save(tmp_path / "policy")
    env = TFPyEnvironment(suite_gym.load("CartPole-v1"))
    returns = []
    for acting in (policy, tf.saved_model.load(tmp_path / "policy")):
        env.pyenv.seed(0)
        returns.append(Evaluator(env, acting, 2).run().returns)
    np.testing.assert_array_equal(*returns)

    saved = SavedModelPyTFEagerPolicy(tmp_path / "policy", load_specs_from_pbtxt=True)
    live = PyTFEagerPolicy(policy, use_tf_function=True)
    observed = []
    for acting in (live, saved):
        python_env = suite_gym.load("CartPole-v1")
        python_env.seed(0)
        seen = []
        PyDriver(python_env, acting, [seen.append], max_episodes=2).run(
            python_env.reset(), acting.get_initial_state()
        )
        observed.append([int(t.action) for t in seen])
    assert observed[0] == observed[1]


@pytest.mark.parametrize(
    "driver",
    [
        lambda *args: DynamicStepDriver(*args, num_steps=25),
        lambda *args: DynamicEpisodeDriver(*args, num_episodes=2),
    ],
)
def test_drivers_carry_the_state_and_trace_once(driver):
    policy = GreedyPolicy(make("stack"))
    env = TFPyEnvironment(suite_gym.load("CartPole-v1"))
    env.pyenv.seed(0)
    wheel = driver(env, policy)
    time_step, state = wheel.run()
    wheel.run(time_step, state)
    tf.nest.assert_same_structure(state, policy.policy_state_spec)
    assert wheel._traced_loop.experimental_get_tracing_count() == 1


def test_an_agents_policies_share_the_networks_state():
    agent = DqnAgent(TIME_STEP, ACTION, NETWORKS["lstm"](), keras.optimizers.Adam())
    for policy in (agent.policy, agent.collect_policy):
        assert [s.shape for s in policy.policy_state_spec] == [[3], [3]]
    assert agent.collect_data_spec.policy_info == ()


def test_updates_take_the_weights_from_another_policy():
    first = QPolicy(TIME_STEP, ACTION, NETWORKS["lstm"]())
    second = QPolicy(TIME_STEP, ACTION, NETWORKS["lstm"]().copy(seed=5))
    expected = [
        (a.numpy() + b.numpy()) / 2
        for a, b in zip(
            first._q_network.trainable_variables,
            second._q_network.trainable_variables,
            strict=True,
        )
    ]
    first.update(second, tau=0.5)
    for v, e in zip(first._q_network.trainable_variables, expected, strict=True):
        np.testing.assert_allclose(v, e, atol=1e-6)
