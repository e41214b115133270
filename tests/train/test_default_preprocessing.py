"""Loops train on observations of any spec with the default preprocessing."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.environments import native, py_environment, tf_py_environment
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.networks import q_network
from tfrl.networks.layers import preprocessing
from tfrl.policies import policy_saver
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.specs import array_spec, tensor_spec
from tfrl.train.loops import off_policy_loop
from tfrl.trajectories import time_step as ts

OBSERVATION = {
    "camera": array_spec.BoundedArraySpec((4, 4, 1), np.uint8, 0, 255),
    "lamps": array_spec.BoundedArraySpec((3,), np.int32, 0, 1),
    "place": (
        array_spec.BoundedArraySpec((), np.int64, 1, 3),
        array_spec.BoundedArraySpec((2,), np.int32, 0, [1, 4]),
    ),
    "speed": array_spec.ArraySpec((2,), np.float32),
}


class Nested(py_environment.PyEnvironment):
    """Episodes of three steps with random observations, which it can restore."""

    def __init__(self):
        super().__init__()
        self._count = 0

    def seed(self, seed):
        self._rng = np.random.default_rng(seed)

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int64, 0, 1)

    def observation_spec(self):
        return OBSERVATION

    def get_state(self):
        return self._count, self._rng.bit_generator.state

    def set_state(self, state):
        self._count, self._rng.bit_generator.state = state

    def _observation(self):
        return tf.nest.map_structure(
            lambda spec: (
                array_spec.sample_spec_nest(spec, self._rng)
                if array_spec.is_bounded(spec)
                else self._rng.normal(size=spec.shape).astype(spec.dtype)
            ),
            OBSERVATION,
        )

    def _reset(self):
        self._count = 0
        return ts.restart(self._observation())

    def _step(self, action):
        self._count += 1
        step = ts.termination if self._count == 3 else ts.transition
        return step(self._observation(), float(action))


def make_network(environment, fc_layer_params=(8,)):
    observation_spec = environment.observation_spec()
    layers, combiner = preprocessing.default_preprocessing(observation_spec)
    return q_network.QNetwork(
        observation_spec,
        environment.action_spec(),
        preprocessing_layers=layers,
        preprocessing_combiner=combiner,
        fc_layer_params=fc_layer_params,
        seed=1,
    )


def make_loop(environment, network=None, jit_compile=False, **arguments):
    if isinstance(environment, py_environment.PyEnvironment):
        environment.seed(0)
        environment = tf_py_environment.TFPyEnvironment(environment)
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        network or make_network(environment),
        seed=2,
        **{"optimizer": keras.optimizers.Adam(1e-2), **arguments},
    )
    agent.initialize()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, environment.batch_size, max_length=200, seed=3
    )
    return off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=20,
        sample_batch_size=32,
        seed=4,
        jit_compile=jit_compile,
    )


ENVIRONMENTS = {
    "dictionary": Nested,
    "tuple": lambda: vector_py_environment.load("Blackjack-v1", 2, "sync"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dictionary", "tuple"])
def test_a_run_resumes_and_its_saved_policy_acts_alike(name, tmp_path):
    whole, after = (make_loop(ENVIRONMENTS[name]()) for _ in range(2))
    first = [v.numpy() for v in whole.agent.variables()]
    whole.run(10)
    path = tf.train.Checkpoint(**whole.checkpoint_items()).write(str(tmp_path / "c"))
    whole.run(10)
    tf.train.Checkpoint(**after.checkpoint_items()).read(path).assert_consumed()
    after.run(10)
    expected, found = ([v.numpy() for v in x.agent.variables()] for x in (whole, after))
    assert any(not np.array_equal(x, y) for x, y in zip(first, expected, strict=True))
    for x, y in zip(expected, found, strict=True):
        np.testing.assert_array_equal(x, y)
    policy_saver.PolicySaver(whole.agent.policy).save(str(tmp_path / "policy"))
    loaded = tf.saved_model.load(str(tmp_path / "policy"))
    observation = tensor_spec.sample_spec_nest(
        tensor_spec.from_spec(whole.environment.observation_spec()),
        outer_dims=[16],
        seed=5,
    )
    time_step = ts.restart(observation, batch_size=16)
    np.testing.assert_array_equal(
        loaded.action(time_step).action, whole.agent.policy.action(time_step).action
    )


# A corridor of four places: action 1 leads to the next one, action 0 stays. The last
# place ends the episode with reward 1.
LENGTH, GAMMA = 4, 0.5


def corridor():
    def step(state, action, random):
        del random
        state = state + tf.cast(action, tf.int64)
        ended = state >= LENGTH
        return native.Outcome(state, tf.cast(ended, tf.float32), ended)

    return native.Dynamics(
        initial=lambda random: tf.zeros(random.shape[:1], tf.int64),
        step=step,
        observe=lambda state: {"place": state, "still": tf.zeros([state.shape[0], 2])},
        observation_spec={
            "place": tensor_spec.BoundedTensorSpec([], tf.int64, 0, LENGTH),
            "still": tf.TensorSpec([2], tf.float32),
        },
        action_spec=tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1),
        num_initial_randoms=1,
        max_episode_steps=50,
    )


def test_a_compiled_linear_network_learns_the_value_of_each_place():
    """On one-hot vectors it is a table; on numbers it could not hold these values."""
    environment = native.NativeEnvironment(corridor(), batch_size=8, seed=0)
    network = make_network(environment, fc_layer_params=())
    loop = make_loop(
        environment,
        network,
        jit_compile=True,
        gamma=GAMMA,
        optimizer=keras.optimizers.Adam(3e-2),
        epsilon_greedy=1.0,
    )
    loop.run(1_000)
    places = tf.range(LENGTH, dtype=tf.int64)
    values, _ = network(environment.dynamics.observation(places))
    onward = GAMMA ** np.arange(LENGTH - 1, -1, -1)
    expected = np.stack([GAMMA * onward, onward], axis=1)
    np.testing.assert_allclose(values, expected, atol=0.02)
