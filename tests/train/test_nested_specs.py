"""Nested observations and actions, and action masks, through all that handles them.

The environment checks what arrives: an action of another structure, type or range, or
one that its mask forbids, is an error.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.agents.reinforce import reinforce_agent
from tfrl.drivers import dynamic_episode_driver, py_driver
from tfrl.environments import (
    batched_py_environment,
    py_environment,
    tf_py_environment,
)
from tfrl.eval import metric_utils
from tfrl.metrics import py_metrics, tf_metrics
from tfrl.networks import (
    actor_distribution_network,
    nest_map,
    q_network,
    sequential,
    value_network,
)
from tfrl.policies import (
    actor_policy,
    greedy_policy,
    policy_saver,
    py_tf_eager_policy,
    random_py_policy,
    random_tf_policy,
)
from tfrl.replay_buffers import (
    episodic_replay_buffer,
    py_uniform_replay_buffer,
    tf_uniform_replay_buffer,
)
from tfrl.specs import array_spec
from tfrl.train.loops import episodic_loop, off_policy_loop
from tfrl.trajectories import time_step as ts

# A dictionary with a dictionary in a tuple, of three dtypes and four ranks.
OBSERVATION = {
    "image": array_spec.BoundedArraySpec((4, 4, 1), np.uint8, 0, 255, "image"),
    "rest": (
        array_spec.ArraySpec((3,), np.float32, "speed"),
        {"place": array_spec.BoundedArraySpec((), np.int32, 0, 4, "place")},
    ),
}
ACTIONS = {
    "turn": array_spec.BoundedArraySpec((), np.int64, 1, 3, "turn"),
    "push": (array_spec.BoundedArraySpec((2,), np.float32, [-1, 0], [1, 4], "push"),),
}
ACTION = array_spec.BoundedArraySpec((), np.int32, 0, 2, "action")


class Nested(py_environment.PyEnvironment):
    """Episodes of three steps; each reward is the step's number."""

    def __init__(self, action_spec=ACTIONS, seed=0):
        super().__init__()
        self._spec = action_spec
        self._rng = np.random.default_rng(seed)
        self._count = 0

    def action_spec(self):
        return self._spec

    def observation_spec(self):
        return OBSERVATION

    def _observation(self):
        return {
            "image": self._rng.integers(255, size=(4, 4, 1)).astype(np.uint8),
            "rest": (
                self._rng.normal(size=3).astype(np.float32),
                {"place": np.array(self._count, np.int32)},
            ),
        }

    def _reset(self):
        self._count = 0
        return ts.restart(self._observation())

    def _step(self, action):
        assert array_spec.check_arrays_nest(action, self._spec), action
        self._count += 1
        step = ts.termination if self._count == 3 else ts.transition
        return step(self._observation(), float(self._count))


class Masked(Nested):
    """The same with one action, and a mask that forbids some values at each step."""

    def __init__(self, seed=0):
        super().__init__(ACTION, seed)
        self._mask = None

    def observation_spec(self):
        mask = array_spec.BoundedArraySpec((3,), np.int32, 0, 1, "mask")
        return {"seen": OBSERVATION, "mask": mask}

    def _observation(self):
        self._mask = np.zeros(3, np.int32)
        self._mask[self._rng.permutation(3)[: 1 + self._count % 2]] = 1
        return {"seen": super()._observation(), "mask": self._mask}

    def _step(self, action):
        assert self._mask[action], (action, self._mask)
        return super()._step(action)


def split(observation):
    return observation["seen"], observation["mask"]


def preprocessing():
    """Layers of the observation's structure, and what combines their outputs."""
    layers = {
        "image": sequential.Sequential(
            [
                keras.layers.Rescaling(1 / 255),
                keras.layers.Conv2D(2, 2, activation="relu"),
                keras.layers.Flatten(),
            ]
        ),
        "rest": (keras.layers.Dense(4), {"place": keras.layers.Embedding(5, 3)}),
    }
    return {
        "preprocessing_layers": layers,
        "preprocessing_combiner": keras.layers.Concatenate(),
    }


def make_reinforce(environment):
    observation_spec = environment.observation_spec()
    arguments = {"fc_layer_params": (8,), **preprocessing(), "seed": 1}
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_distribution_network.ActorDistributionNetwork(
            observation_spec, environment.action_spec(), **arguments
        ),
        keras.optimizers.Adam(1e-2),
        value_network=value_network.ValueNetwork(observation_spec, **arguments),
        entropy_regularization=0.01,
        seed=2,
    )
    agent.initialize()
    return agent


def make_dqn(environment, kind=dqn_agent.DqnAgent, **kwargs):
    seen, _ = split(environment.observation_spec())
    agent = kind(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network.QNetwork(
            seen, environment.action_spec(), fc_layer_params=(8,), **preprocessing()
        ),
        keras.optimizers.Adam(1e-2),
        observation_and_action_constraint_splitter=split,
        seed=2,
        **kwargs,
    )
    agent.initialize()
    return agent


@pytest.fixture(scope="module")
def environment():
    return tf_py_environment.TFPyEnvironment(
        batched_py_environment.BatchedPyEnvironment([Nested(seed=i) for i in (1, 2)])
    )


@pytest.fixture(scope="module")
def reinforce(environment):
    return make_reinforce(environment)


def values(agent):
    return [v.numpy() for v in agent.variables()]


def changed(before, agent):
    return any(
        not np.array_equal(a, b) for a, b in zip(before, values(agent), strict=True)
    )


@pytest.mark.slow
def test_tutorial_loop_of_reinforce(environment, reinforce):
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        reinforce.collect_data_spec, environment.batch_size, max_length=20
    )
    dynamic_episode_driver.DynamicEpisodeDriver(
        environment,
        reinforce.collect_policy,
        observers=[replay_buffer.add_batch],
        num_episodes=2,
    ).run()
    experience = replay_buffer.gather_all()
    assert experience.observation["image"].dtype == tf.uint8
    assert experience.observation["rest"][1]["place"].shape[0] == 2
    assert experience.action["push"][0].shape[2:] == (2,)
    before = values(reinforce)
    assert np.isfinite(reinforce.train(experience).loss)
    assert changed(before, reinforce)


@pytest.mark.slow
def test_episodic_loop():
    environment = tf_py_environment.TFPyEnvironment(Nested())
    agent = make_reinforce(environment)
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, 1, max_length=20
    )
    loop = episodic_loop.EpisodicLoop(environment, agent, replay_buffer, seed=3)
    before = values(agent)
    info = loop.run(2)
    assert info.train_steps == 2
    assert changed(before, agent)


@pytest.mark.slow
def test_episodic_replay(environment, reinforce):
    buffer = episodic_replay_buffer.StatefulEpisodicReplayBuffer(
        episodic_replay_buffer.EpisodicReplayBuffer(
            reinforce.collect_data_spec, capacity=10
        ),
        num_episodes=2,
    )
    dynamic_episode_driver.DynamicEpisodeDriver(
        environment,
        reinforce.collect_policy,
        observers=[buffer.add_batch],
        num_episodes=2,
    ).run()
    episodes, _ = next(iter(buffer.as_dataset(2, num_steps=2)))
    assert episodes.action["turn"].shape == (2, 2)
    tf.nest.assert_same_structure(episodes, reinforce.collect_data_spec)


@pytest.mark.slow
def test_saved_policy_acts_as_the_policy(environment, reinforce, tmp_path):
    policy_saver.PolicySaver(reinforce.policy, batch_size=None).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    time_step = environment.reset()
    expected = reinforce.policy.action(time_step).action
    action = loaded.action(time_step).action
    np.testing.assert_array_equal(action["turn"], expected["turn"])
    np.testing.assert_allclose(action["push"][0], expected["push"][0], rtol=1e-5)
    on_arrays = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        str(tmp_path), load_specs_from_pbtxt=True
    )
    tf.nest.assert_same_structure(on_arrays.action_spec, ACTIONS)
    assert on_arrays.time_step_spec.observation["rest"][1]["place"].dtype == np.int32
    metrics = [py_metrics.AverageReturnMetric()]
    results = metric_utils.compute(metrics, Nested(), on_arrays, num_episodes=2)
    assert results["AverageReturn"] == 6


def test_evaluation(environment, reinforce):
    metrics = [tf_metrics.AverageReturnMetric(batch_size=environment.batch_size)]
    results = metric_utils.eager_compute(
        metrics, environment, reinforce.policy, num_episodes=2
    )
    assert results["AverageReturn"] == 6


@pytest.mark.parametrize("masked", [False, True])
def test_random_tf_policy(masked):
    environment = tf_py_environment.TFPyEnvironment(Masked() if masked else Nested())
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(),
        environment.action_spec(),
        observation_and_action_constraint_splitter=split if masked else None,
        emit_log_probability=True,
        seed=1,
    )
    metric = tf_metrics.NumberOfEpisodes()
    dynamic_episode_driver.DynamicEpisodeDriver(
        environment, policy, observers=[metric], num_episodes=3
    ).run()
    assert int(metric.result()) == 3


@pytest.mark.parametrize("greedy", [False, True])
def test_actor_policy_under_a_mask(greedy):
    environment = tf_py_environment.TFPyEnvironment(Masked())
    seen, _ = split(environment.observation_spec())
    network = actor_distribution_network.ActorDistributionNetwork(
        seen, environment.action_spec(), fc_layer_params=(8,), **preprocessing()
    )
    policy = actor_policy.ActorPolicy(
        environment.time_step_spec(),
        environment.action_spec(),
        network,
        observation_and_action_constraint_splitter=split,
        seed=1,
    )
    if greedy:
        policy = greedy_policy.GreedyPolicy(policy)
    metric = tf_metrics.NumberOfEpisodes()
    dynamic_episode_driver.DynamicEpisodeDriver(
        environment, policy, observers=[metric], num_episodes=3
    ).run()
    assert int(metric.result()) == 3


def test_python_drivers_policies_and_buffers():
    environment = Nested()
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec(), seed=1
    )
    buffer = py_uniform_replay_buffer.PyUniformReplayBuffer(
        policy.trajectory_spec, capacity=20
    )
    py_driver.PyDriver(
        environment,
        policy,
        observers=[
            lambda frame: buffer.add_batch(
                tf.nest.map_structure(lambda x: x[None], frame)
            )
        ],
        max_episodes=2,
    ).run(environment.reset())
    frames = buffer.get_next(sample_batch_size=3, num_steps=2)
    assert frames.observation["rest"][0].shape == (3, 2, 3)
    assert frames.action["push"][0].dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "exploration"),
    [
        (dqn_agent.DqnAgent, {"epsilon_greedy": 0.5}),
        pytest.param(
            dqn_agent.DdqnAgent,
            {"epsilon_greedy": None, "boltzmann_temperature": lambda: 2.0},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_off_policy_loop_under_a_mask(kind, exploration):
    environment = tf_py_environment.TFPyEnvironment(Masked())
    agent = make_dqn(environment, kind, emit_log_probability=True, **exploration)
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, 1, max_length=50, seed=4
    )
    loop = off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=10,
        sample_batch_size=4,
        seed=5,
    )
    before = values(agent)
    info = loop.run(10)
    assert info.train_steps == 10
    assert changed(before, agent)


@pytest.mark.slow
def test_saved_policy_keeps_to_the_mask(tmp_path):
    environment = tf_py_environment.TFPyEnvironment(Masked())
    agent = make_dqn(environment)
    policy_saver.PolicySaver(agent.policy).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    time_step = environment.reset()
    for _ in range(8):
        action = loaded.action(time_step).action
        np.testing.assert_array_equal(action, agent.policy.action(time_step).action)
        time_step = environment.step(action)


@pytest.mark.slow
def test_nest_map_as_the_torso_of_a_q_network():
    environment = tf_py_environment.TFPyEnvironment(Nested(ACTION))
    arguments = preprocessing()
    network = sequential.Sequential(
        [
            nest_map.NestMap(arguments["preprocessing_layers"]),
            nest_map.NestFlatten(),
            keras.layers.Concatenate(),
            keras.layers.Dense(3),
        ],
        input_spec=environment.observation_spec(),
    )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        network,
        keras.optimizers.Adam(1e-2),
        n_step_update=2,
    )
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, 1, max_length=20
    )
    dynamic_episode_driver.DynamicEpisodeDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch],
        num_episodes=3,
    ).run()
    experience, _ = next(iter(buffer.as_dataset(4, num_steps=3)))
    before = values(agent)
    assert np.isfinite(agent.train(experience).loss)
    assert changed(before, agent)
