"""Runs on Gymnasium's environments resume bit for bit.

A loop does all iterations without a pause; then, from its beginning again, half of
them, and saves a checkpoint, from which another loop goes on. A compiled loop, which
XLA compiles for seconds, goes on itself, from farther on. All variables and the states
of environment and policy are compared.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tree

from tfrl.agents.dqn import dqn_agent
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import (
    suite_atari,
    suite_gym,
    suite_mujoco,
    tf_py_environment,
)
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.networks import actor_distribution_network, q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.savers import serialization
from tfrl.train.loops import episodic_loop, off_policy_loop

SEED = 5


def make_environment(name, num_members, max_episode_steps):
    if name == "Pong":
        environment = suite_atari.load_batch(
            "ALE/Pong-v5", num_members, max_episode_steps=max_episode_steps
        )
    elif num_members > 1:
        environment = vector_py_environment.load(
            name, num_members, max_episode_steps=max_episode_steps
        )
    else:
        suite = suite_mujoco if name == "HalfCheetah-v5" else suite_gym
        environment = suite.load(name, max_episode_steps=max_episode_steps)
    environment.seed(SEED)
    return tf_py_environment.TFPyEnvironment(environment)


def make_buffer(environment, agent, max_length):
    return tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, environment.batch_size, max_length, seed=2
    )


def make_dqn(name, num_members, jit_compile):
    environment = make_environment(name, num_members, 20)
    layers = {"fc_layer_params": ()}
    if name == "Pong":
        layers["conv_layer_params"] = ((2, 8, 8),)
    if name == "FrozenLake-v1":
        layers["preprocessing_layers"] = keras.layers.Lambda(
            lambda place: tf.one_hot(place, 16), output_shape=(16,)
        )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(), environment.action_spec(), seed=1, **layers
        ),
        optimizer=keras.optimizers.Adam(1e-2),
        epsilon_greedy=0.3,
        target_update_period=7,
        seed=1,
    )
    agent.initialize()
    return off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        make_buffer(environment, agent, 60),
        initial_collect_steps=10,
        sample_batch_size=4,
        seed=3,
        jit_compile=jit_compile,
    )


def make_reinforce(name, num_members, jit_compile):
    environment = make_environment(name, num_members, 15)
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor_distribution_network.ActorDistributionNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(4,),
            seed=1,
        ),
        optimizer=keras.optimizers.Adam(1e-2),
        seed=1,
    )
    agent.initialize()
    return episodic_loop.EpisodicLoop(
        environment,
        agent,
        make_buffer(environment, agent, 40),
        collect_episodes_per_iteration=2,
        seed=3,
        jit_compile=jit_compile,
    )


def save(loop, path):
    return tf.train.Checkpoint(**loop.checkpoint_items()).write(str(path))


def contents(loop, path):
    """Returns all that a checkpoint of `loop` holds, by name."""
    reader = tf.train.load_checkpoint(save(loop, path))
    values = {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}
    (position,) = (key for key in values if key.startswith("position/"))
    values[position] = serialization.from_bytes(values[position])
    del values["_CHECKPOINTABLE_OBJECT_GRAPH"]
    # A loop gives policies its own seeds; they do not use their generators, which begin
    # with other seeds in each process.
    return {k: value for k, value in values.items() if "/_generator/" not in k}


# The states of each environment have tests of their own, and so has what an
# `OffPolicyLoop` or a compiled loop resumes.
FAST = ("reinforce-HalfCheetah-v5-plain-1",)


def cases():
    """Yields the arguments of the test."""
    for make, name, half in (
        (make_dqn, "CartPole-v1", 30),
        (make_dqn, "FrozenLake-v1", 30),
        (make_dqn, "Pong", 15),
        (make_reinforce, "CartPole-v1", 3),
        (make_reinforce, "HalfCheetah-v5", 3),
    ):
        for kind in ("plain", "compiled"):
            for num_members in (1, 2):
                case = f"{make.__name__[5:]}-{name}-{kind}-{num_members}"
                yield pytest.param(
                    functools.partial(make, name, num_members, kind == "compiled"),
                    half,
                    kind == "compiled",
                    marks=[pytest.mark.slow] * (case not in FAST),
                    id=case,
                )


@pytest.mark.slow
@pytest.mark.filterwarnings("error:.*leave out the state:RuntimeWarning")
@pytest.mark.parametrize(("make_loop", "half", "is_compiled"), list(cases()))
def test_a_run_resumes_bit_for_bit(make_loop, half, is_compiled, tmp_path):
    loop = make_loop()
    beginning = save(loop, tmp_path / "beginning")
    loop.run(2 * half)
    expected = contents(loop, tmp_path / "whole")
    tf.train.Checkpoint(**loop.checkpoint_items()).read(beginning)
    loop.environment.seed(SEED)
    loop.environment._num_steps = 0  # It counts on, for messages.
    loop.run(half)
    middle = save(loop, tmp_path / "middle")
    if is_compiled:
        loop.run(half + 1)
    after = loop if is_compiled else make_loop()
    tf.train.Checkpoint(**after.checkpoint_items()).read(middle).assert_consumed()
    info = after.run(half)
    assert info.iteration == 2 * half
    found = contents(after, tmp_path / "after")
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        tree.map_structure(np.testing.assert_array_equal, found[key], value)
