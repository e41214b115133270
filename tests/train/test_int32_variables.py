"""No part of the package makes a variable of int32, which no GPU can hold.

`tests/agents/test_every_agent.py` says so of agents.
"""

import functools

import pytest
import tensorflow as tf

from tests import int32_handles
from tests.agents.every_agent import KINDS
from tests.pairs import some_slow
from tfrl import train
from tfrl.drivers import dynamic_episode_driver, dynamic_step_driver
from tfrl.environments import native, random_tf_environment
from tfrl.eval import evaluate
from tfrl.metrics import tf_metrics
from tfrl.replay_buffers import (
    EpisodicReplayBuffer,
    StatefulEpisodicReplayBuffer,
    Table,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.specs import tensor_spec
from tfrl.train.sweeps import members
from tfrl.trajectories import time_step as ts

OBSERVATION = {
    "place": tensor_spec.BoundedTensorSpec([], tf.int32, 0, 4),
    "speed": tf.TensorSpec([2], tf.float32),
}
# One of the leaves is too large to be packed.
INTEGERS = {"small": tf.TensorSpec([2]), "large": tf.TensorSpec([2_000], tf.int32)}
METRICS = {
    "ChosenActionHistogram": {},
    "AverageReturnMetric": {"dtype": tf.int32},
    "AverageReturnMultiMetric": {
        "reward_spec": tf.TensorSpec([], tf.int32),
        "dtype": tf.int32,
    },
    "AverageEpisodeLengthMetric": {"dtype": tf.int32},
    "EnvironmentSteps": {"dtype": tf.int32},
    "NumberOfEpisodes": {"dtype": tf.int32},
}


@pytest.fixture
def made():
    """The names of the variables of int32 that the test makes."""
    with int32_handles.recorded() as names:
        yield names


def test_a_variable_of_int32_is_seen(made):
    tf.Variable(0, name="steps")
    with tf.init_scope():
        tf.Variable([1], name="others")
    tf.Variable(0, dtype=tf.int64, name="int64")
    assert made == ["steps/", "others/"]


@pytest.mark.parametrize(
    "kind",
    [
        TFUniformReplayBuffer,
        TFPrioritizedReplayBuffer,
        functools.partial(EpisodicReplayBuffer, capacity=5),
    ],
)
def test_of_a_replay_buffer(kind, made):
    if isinstance(kind, functools.partial):
        StatefulEpisodicReplayBuffer(kind(INTEGERS), num_episodes=2)
    else:
        kind(INTEGERS, batch_size=2, max_length=5)
    assert not made


def test_of_a_table(made):
    Table(tf.TensorSpec([], tf.int32), capacity=3)
    assert not made


def cells():
    """Dynamics whose state is the number of a cell."""

    def step(state, action, random):
        return native.Outcome(state + action, tf.ones_like(random[:, 0]), state > 5)

    return native.Dynamics(
        lambda random: tf.cast(3 * random[:, 0], tf.int32),
        step,
        observation_spec=tf.TensorSpec([], tf.int32),
        action_spec=tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1),
        num_initial_randoms=1,
        num_step_randoms=1,
    )


@pytest.mark.parametrize("name", [*native.names(), "cells"])
def test_of_a_native_environment(name, made):
    if name == "cells":
        native.NativeEnvironment(cells())
    else:
        native.load(name)
    assert not made


def test_of_a_random_environment(made):
    random_tf_environment.RandomTFEnvironment(
        ts.time_step_spec(OBSERVATION), KINDS["DqnAgent"].action_spec
    )
    assert not made


@pytest.mark.parametrize("name", METRICS)
def test_of_a_metric(name, made):
    getattr(tf_metrics, name)(**METRICS[name])
    assert not made


def pendulum():
    dynamics = native.load("Pendulum-v1").dynamics
    return native.NativeEnvironment(
        native.discretize_actions(dynamics, 3), batch_size=2, seed=0
    )


def parts(kind):
    environment = pendulum()
    agent = KINDS[kind].make(environment.time_step_spec(), environment.action_spec())
    buffer = TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=2, max_length=400
    )
    return environment, agent, buffer


def off_policy_loop(seed=0):
    return train.OffPolicyLoop(*parts("DqnAgent"), jit_compile=True, seed=seed)


def on_policy_loop():
    environment, agent, _ = parts("PPOClipAgent")
    return train.OnPolicyLoop(
        environment, agent, collect_steps_per_iteration=4, minibatch_size=2
    )


def dataset_loop():
    _, agent, buffer = parts("DqnAgent")
    return train.DatasetLoop(agent, lambda: buffer.as_dataset(2, 2), buffer)


def offline_loop():
    environment, agent, buffer = parts("BehavioralCloningAgent")
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, agent.collect_policy, [buffer.add_batch], num_steps=4
    )
    driver.run()
    return train.OfflineLoop(agent, buffer)


def episodic_loop():
    return train.EpisodicLoop(
        *parts("ReinforceAgent"), collect_episodes_per_iteration=2
    )


def sweep():
    return members.Members(off_policy_loop, [0, 1], {}, num_eval_episodes=2)


def evaluation():
    environment, agent, _ = parts("DqnAgent")
    return evaluate.Evaluator(environment, agent.policy, num_episodes=2).run()


def episode_driver():
    environment, agent, _ = parts("DqnAgent")
    return dynamic_episode_driver.DynamicEpisodeDriver(environment, agent.policy).run()


@pytest.mark.parametrize(
    "make",
    some_slow(
        [
            off_policy_loop,
            on_policy_loop,
            dataset_loop,
            offline_loop,
            episodic_loop,
            sweep,
            evaluation,
            episode_driver,
        ],
        fast=[off_policy_loop, on_policy_loop, episodic_loop, evaluation],
    ),
)
def test_of_what_trains_and_evaluates(make, made):
    make()
    assert not made
