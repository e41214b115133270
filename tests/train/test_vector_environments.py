"""The off-policy loop over several environments at once."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import train
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import tf_py_environment
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.trajectories import time_step as ts


@pytest.mark.cpu
@pytest.mark.parametrize(
    "sampling", ["dataset", pytest.param("variables", marks=pytest.mark.slow)]
)
def test_members_fill_columns_of_their_own_and_are_all_counted(sampling):
    py_environment = vector_py_environment.load("CartPole-v1", 3)
    py_environment.seed(0)
    environment = tf_py_environment.TFPyEnvironment(py_environment)
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(), environment.action_spec(), seed=0
        ),
        optimizer=keras.optimizers.Adam(1e-3),
        seed=0,
    )
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=3, max_length=200, seed=0
    )
    loop = train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=60,
        sampling=sampling,
        seed=0,
    )
    info = loop.run(40)
    frames = replay_buffer.gather_all()
    assert frames.reward.shape == (3, 20 + 40)
    boundaries = int(tf.reduce_sum(tf.cast(frames.is_boundary(), tf.int32)))
    assert boundaries > 0
    assert info.environment_steps == 3 * 60 - boundaries
    # Within a column, every frame is followed by the one it led to.
    np.testing.assert_array_equal(
        frames.next_step_type[:, :-1], frames.step_type[:, 1:]
    )
    # A reset is a frame from LAST to FIRST, never a transition with a reward.
    resets = frames.next_step_type == ts.StepType.FIRST
    assert np.all(frames.step_type.numpy()[resets] == ts.StepType.LAST)
    assert np.all(frames.reward.numpy()[resets] == 0)
