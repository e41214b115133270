"""DQN's `train`: which variables it changes and when, and that it learns."""

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl.agents.dqn import dqn_agent
from tfrl.networks import network, sequential
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32, "observation")
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
DQN, DDQN = (dqn_agent.DqnAgent, dqn_agent.DdqnAgent)
KERNEL, BIAS = [[1.0, -1], [0.5, 2]], [0.25, -0.5]
TARGET_KERNEL, TARGET_BIAS = [[0.5, 1], [-1, 1.5]], [0.0, 1]


def linear(kernel=KERNEL, bias=BIAS, **kwargs):
    dense = keras.layers.Dense(
        2,
        kernel_initializer=keras.initializers.Constant(kernel),
        bias_initializer=keras.initializers.Constant(bias),
        **kwargs,
    )
    return sequential.Sequential([dense], input_spec=OBSERVATION)


def make(kind=dqn_agent.DqnAgent, q_network=None, optimizer=None, **kwargs):
    return kind(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        q_network or linear(),
        optimizer or keras.optimizers.SGD(0.1),
        **kwargs,
    )


def frames(seed=0, num_frames=2, batch_size=3):
    """Frames inside episodes, observations and rewards at random."""
    rng = np.random.default_rng(seed)
    shape = [batch_size, num_frames]
    return trajectory.Trajectory(
        step_type=tf.fill(shape, MID),
        observation=tf.constant(rng.normal(size=[*shape, 2]), tf.float32),
        action=tf.constant(rng.integers(2, size=shape), tf.int32),
        policy_info=(),
        next_step_type=tf.fill(shape, MID),
        reward=tf.constant(rng.normal(size=shape), tf.float32),
        discount=tf.ones(shape),
    )


# The frames, and below the figures, of a run of TF-Agents 0.19 with the same weights.
REFERENCE = trajectory.Trajectory(
    step_type=tf.fill([3, 2], MID),
    observation=tf.constant([[[1.0, 2], [3, -1]], [[0, 1], [-2, 1]], [[2, 2], [1, 0]]]),
    action=tf.constant([[0, 1], [1, 0], [1, 1]]),
    policy_info=(),
    next_step_type=tf.fill([3, 2], MID),
    reward=tf.constant([[1.0, 2], [-0.5, 0.25], [4, 0]]),
    discount=tf.fill([3, 2], 0.9),
)


def values(variables):
    return [v.numpy() for v in variables]


def assert_all_equal(some, others):
    for a, b in zip(some, others, strict=True):
        np.testing.assert_array_equal(a, b)


def q_variables(agent):
    return agent.variables()[:2]


def target_variables(agent):
    return agent.variables()[2:4]


# --- One update.


@pytest.mark.parametrize(
    ("kind", "losses"),
    [
        (dqn_agent.DqnAgent, [1.6395832, 1.1445718]),
        (dqn_agent.DdqnAgent, [1.2795833, 1.0896583]),
    ],
)
def test_updates_are_those_of_tf_agents(kind, losses):
    agent = make(
        kind,
        linear(kernel_regularizer=keras.regularizers.L2(0.01)),
        target_q_network=linear(TARGET_KERNEL, TARGET_BIAS),
        gamma=0.8,
        target_update_tau=0.3,
        gradient_clipping=0.5,
    )
    for loss in losses:
        np.testing.assert_allclose(agent.train(REFERENCE).loss, loss, rtol=1e-5)
    kernel, bias, target_kernel, target_bias = values(agent.variables()[:4])
    np.testing.assert_allclose(
        kernel, [[1.0191953, -0.918413], [0.5419551, 2.0348525]], rtol=1e-5
    )
    np.testing.assert_allclose(bias, [0.28631222, -0.5], rtol=1e-5)
    np.testing.assert_allclose(
        target_kernel, [[0.7627919, 0.01302406], [-0.21797347, 1.7691072]], rtol=1e-4
    )
    np.testing.assert_allclose(target_bias, [0.14224367, 0.23499995], rtol=1e-4)


@pytest.mark.parametrize("clipping", [None, 1e-3, 1e3])
def test_each_gradient_is_clipped_to_the_norm(clipping):
    agent = make(optimizer=keras.optimizers.SGD(1.0), gradient_clipping=clipping)
    free = make(optimizer=keras.optimizers.SGD(1.0))
    before = values(q_variables(agent))
    agent.train(REFERENCE)
    free.train(REFERENCE)
    for old, new, unclipped in zip(
        before, values(q_variables(agent)), values(q_variables(free)), strict=True
    ):
        norm = np.linalg.norm(unclipped - old)
        expected = norm if clipping is None else min(norm, clipping)
        np.testing.assert_allclose(np.linalg.norm(new - old), expected, rtol=1e-3)


def test_train_returns_the_loss_before_the_update():
    agent = make()
    expected = agent.loss(REFERENCE).loss
    np.testing.assert_array_equal(agent.train(REFERENCE).loss, expected)
    assert agent.loss(REFERENCE).loss < expected


class Unused(network.Network):
    """Has a weight that the output does not depend on."""

    def __init__(self, input_tensor_spec=None, name="Unused"):
        super().__init__(input_tensor_spec, (), name)
        self._dense, self._unused = keras.layers.Dense(2), keras.layers.Dense(1)

    def call(self, observation):
        self._unused(observation)
        return self._dense(observation), ()


@pytest.mark.parametrize("clipping", [None, 0.5])
def test_weights_without_gradient_are_left_alone(clipping):
    agent = make(
        q_network=Unused(),
        optimizer=keras.optimizers.Adam(0.1),
        gradient_clipping=clipping,
    )
    before = values(agent.variables()[:4])
    agent.train(REFERENCE)
    changed = [
        (old != new).any()
        for old, new in zip(before, values(agent.variables()[:4]), strict=True)
    ]
    assert changed == [True, True, False, False]


# --- The target network.


def test_initialize_copies_the_network():
    agent = make(target_q_network=linear(TARGET_KERNEL, TARGET_BIAS))
    agent.initialize()
    assert_all_equal(q_variables(agent), target_variables(agent))


@pytest.mark.parametrize(("period", "graph"), [(1, True), (2, False), (3, True)])
def test_target_is_updated_at_every_period_th_call(period, graph):
    agent = make(target_update_period=period)
    agent.initialize()
    train = common.function(agent.train) if graph else agent.train
    expected = values(target_variables(agent))
    for call in range(1, 7):
        train(frames(call))
        if call % period == 0:
            expected = values(q_variables(agent))
        assert_all_equal(expected, target_variables(agent))


def test_tau_moves_the_target_a_part_of_the_way():
    agent = make(
        target_q_network=linear(TARGET_KERNEL, TARGET_BIAS), target_update_tau=0.25
    )
    agent.train(REFERENCE)
    kernel, bias = values(q_variables(agent))
    target_kernel, target_bias = values(target_variables(agent))
    np.testing.assert_allclose(
        target_kernel, 0.75 * np.array(TARGET_KERNEL) + 0.25 * kernel, rtol=1e-5
    )
    np.testing.assert_allclose(
        target_bias, 0.75 * np.array(TARGET_BIAS) + 0.25 * bias, rtol=1e-5
    )


def test_statistics_of_batch_normalisation_are_copied_whatever_tau():
    q_network = keras.Sequential(
        [keras.layers.BatchNormalization(scale=False), keras.layers.Dense(2)]
    )
    agent = make(q_network=q_network, target_update_tau=0.25)
    agent.initialize()
    agent.train(REFERENCE)
    # beta, moving mean, moving variance, kernel, bias; then the target's.
    online, target = values(agent.variables()[:5]), values(agent.variables()[5:10])
    names = [v.name.split("/")[-1].split(":")[0] for v in agent.variables()[:5]]
    copied = {
        name: np.array_equal(a, b)
        for name, a, b in zip(names, online, target, strict=True)
    }
    assert (online[names.index("moving_mean")] != 0).any()
    assert copied == {
        "beta": False,
        "moving_mean": True,
        "moving_variance": True,
        "kernel": False,
        "bias": False,
    }


# --- Variables, traces, checkpoints.


def all_tf_variables():
    gc.collect()
    return [
        x for x in gc.get_objects() if isinstance(x, tf.Variable) and x.is_initialized()
    ]


def mixed_network():
    return keras.Sequential(
        [
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5, seed=1),
            keras.layers.Dense(2),
        ]
    )


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.1),
    "decayed": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    ),
    "clipped": lambda: keras.optimizers.Adam(0.1, clipnorm=1.0),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "v1": lambda: tf.compat.v1.train.AdamOptimizer(0.1),
}


@pytest.mark.slow
def test_variables_list_all_that_train_changes():
    agents = [
        make(
            q_network=mixed_network(),
            optimizer=OPTIMIZERS[optimizer](),
            target_update_period=2,
            target_update_tau=0.5,
        )
        for optimizer in ("adam", "momentum", "v1")
    ]
    everything = all_tf_variables()
    before = values(everything)
    for agent in agents:
        agent.train(REFERENCE)
        agent.train(REFERENCE)
    changed = {
        id(v)
        for v, old in zip(everything, before, strict=True)
        if not np.array_equal(old, v)
    }
    for agent in agents:
        listed = {id(v) for v in agent.variables()}
        assert len(listed) == len(agent.variables())
        assert changed & listed
        changed -= listed
    assert not changed
    assert len(all_tf_variables()) == len(everything)


@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [
        (DQN, "adam"),
        (DDQN, "momentum"),
        (DQN, "v1"),
        pytest.param(DDQN, "adam", marks=pytest.mark.slow),
        pytest.param(DQN, "momentum", marks=pytest.mark.slow),
        pytest.param(DDQN, "v1", marks=pytest.mark.slow),
    ],
)
def test_train_traces_once(kind, optimizer):
    agent = make(kind, optimizer=OPTIMIZERS[optimizer](), target_update_period=2)
    train = common.function(agent.train)
    for seed in range(4):
        train(frames(seed))
    assert train.experimental_get_tracing_count() == 1
    assert agent.train_step_counter == 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DQN, DDQN])
def test_compiled_train_gives_the_same_weights(kind):
    agents = [
        make(kind, optimizer=OPTIMIZERS["adam"](), target_update_period=2)
        for _ in range(2)
    ]
    eager, compiled = agents[0].train, tf.function(agents[1].train, jit_compile=True)
    for seed in range(3):
        np.testing.assert_allclose(
            eager(frames(seed)).loss, compiled(frames(seed)).loss, rtol=1e-5
        )
    for a, b in zip(*(agent.variables() for agent in agents), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", some_slow(OPTIMIZERS, fast=["decayed", "v1"]))
def test_restored_agent_continues_bit_by_bit(optimizer, tmp_path):
    def fresh():
        return make(
            dqn_agent.DdqnAgent,
            q_network=mixed_network(),
            optimizer=OPTIMIZERS[optimizer](),
            target_update_period=3,
            target_update_tau=0.5,
        )

    agent = fresh()
    agent.initialize()
    for seed in range(2):
        agent.train(frames(seed))
    path = tf.train.Checkpoint(agent=agent).save(str(tmp_path / "checkpoint"))
    for seed in range(2, 5):
        agent.train(frames(seed))

    restored = fresh()
    status = tf.train.Checkpoint(agent=restored).restore(path)
    status.assert_existing_objects_matched().assert_consumed()
    assert restored.train_step_counter == 2
    for seed in range(2, 5):
        restored.train(frames(seed))
    assert_all_equal(agent.variables(), restored.variables())


def test_train_may_be_replaced_by_a_function_as_the_tutorials_do(tmp_path):
    agent = make()
    agent.train = common.function(agent.train)
    agent.train(REFERENCE)
    tf.train.Checkpoint(agent=agent).save(str(tmp_path / "checkpoint"))


# --- The train step counter.


def test_counter_is_the_agents_own_int64_by_default():
    first, second = make(), make()
    first.train(REFERENCE)
    assert first.train_step_counter.dtype == tf.int64
    assert (first.train_step_counter.numpy(), second.train_step_counter.numpy()) == (
        1,
        0,
    )


def test_given_counter_is_incremented():
    for counter in (
        tf.Variable(0),
        tf.compat.v1.train.get_or_create_global_step(),
    ):
        counter.assign(5)
        agent = make(train_step_counter=counter)
        agent.train(REFERENCE)
        assert agent.train_step_counter is counter
        assert counter == 6
        assert any(v is counter for v in agent.variables())


# --- Learning.


def tabular(num_states, num_actions=2):
    """An agent's arguments for Q-values in a table, observations being one-hot."""
    spec = tf.TensorSpec([num_states], tf.float32)
    table = keras.layers.Dense(
        num_actions, use_bias=False, kernel_initializer="zeros", name="table"
    )
    return ts.time_step_spec(spec), sequential.Sequential([table], input_spec=spec)


def transitions(table):
    """Frames `[N, 2]` of rows (state, action, reward, discount, next state)."""
    states, actions, rewards, discounts, next_states = np.transpose(table)
    ends, states, next_states = (
        discounts == 0,
        states.astype(int),
        next_states.astype(int),
    )
    eye = np.eye(2, dtype=np.float32)
    num = len(table)
    return trajectory.Trajectory(
        step_type=tf.constant(
            np.stack([[MID] * num, np.where(ends, LAST, MID)], 1), tf.int32
        ),
        observation=tf.constant(np.stack([eye[states], eye[next_states]], 1)),
        action=tf.constant(np.stack([actions, actions], 1), tf.int32),
        policy_info=(),
        next_step_type=tf.constant(
            np.stack([np.where(ends, LAST, MID), np.where(ends, FIRST, MID)], 1),
            tf.int32,
        ),
        reward=tf.constant(np.stack([rewards, 0 * rewards], 1), tf.float32),
        discount=tf.constant(np.stack([discounts, 0 * discounts + 1], 1), tf.float32),
    )


@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [
        (DQN, "sgd"),
        (DDQN, "adam"),
        pytest.param(DDQN, "sgd", marks=pytest.mark.slow),
        pytest.param(DQN, "adam", marks=pytest.mark.slow),
    ],
)
def test_learns_the_optimal_values_of_a_small_task(kind, optimizer):
    # From A, action 0 leads to B for nothing and 1 ends with 1. From B, action 0 ends
    # with 3 and 1 leads back. With gamma 0.9: Q(A, 0) = 2.7, Q(B, 1) = 0.9 * 2.7.
    experience = transitions(
        [(0, 0, 0, 1, 1), (0, 1, 1, 0, 0), (1, 0, 3, 0, 0), (1, 1, 0, 1, 0)]
    )
    time_step_spec, q_network = tabular(num_states=2)
    agent = kind(
        time_step_spec,
        ACTION,
        q_network,
        {"sgd": keras.optimizers.SGD(1.0), "adam": keras.optimizers.Adam(0.05)}[
            optimizer
        ],
        gamma=0.9,
        target_update_period=5,
        td_errors_loss_fn=common.element_wise_squared_loss,
    )
    agent.initialize()
    train = common.function(agent.train)
    first = train(experience).loss
    for _ in range(400):
        last = train(experience).loss
    np.testing.assert_allclose(agent.variables()[0], [[2.7, 1], [3, 2.43]], atol=0.02)
    assert last < 1e-3 * first
    actions = agent.policy.action(ts.restart(tf.eye(2), 2)).action
    np.testing.assert_array_equal(actions, [0, 0])


@pytest.mark.parametrize("n", [1, 3])
def test_time_limit_task_has_the_value_of_the_infinite_horizon(n):
    # Reward 1 at every step, no end but the time limit of 4: Q = 1 / (1 - 0.9) = 10.
    # An agent that took the limit for an end would stay below 1 + ... + 0.9^3 = 3.4.
    limit, length = 4, 16
    position = np.arange(length) % (limit + 1)
    step_type = np.where(position == 0, FIRST, np.where(position == limit, LAST, MID))
    next_step_type = np.roll(step_type, -1)
    rewards = (position != limit).astype(np.float32)
    starts = np.arange(length - n)
    windows = starts[:, None] + np.arange(n + 1)
    experience = trajectory.Trajectory(
        step_type=tf.constant(step_type[windows], tf.int32),
        observation=tf.ones([*windows.shape, 1]),
        action=tf.zeros(windows.shape, tf.int32),
        policy_info=(),
        next_step_type=tf.constant(next_step_type[windows], tf.int32),
        reward=tf.constant(rewards[windows]),
        discount=tf.ones(windows.shape),
    )
    time_step_spec, q_network = tabular(num_states=1, num_actions=1)
    agent = dqn_agent.DqnAgent(
        time_step_spec,
        tensor_spec.BoundedTensorSpec([], tf.int32, 0, 0),
        q_network,
        keras.optimizers.SGD(0.5),
        gamma=0.9,
        n_step_update=n,
        td_errors_loss_fn=common.element_wise_squared_loss,
    )
    train = common.function(agent.train)
    for _ in range(200):
        train(experience)
    np.testing.assert_allclose(agent.variables()[0], [[10.0]], rtol=1e-3)
