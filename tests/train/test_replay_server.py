"""The loops with their experience in a replay server."""

import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service as reverb
from tfrl.agents.dqn import dqn_agent
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import test_envs, tf_py_environment
from tfrl.networks import actor_distribution_network, q_network
from tfrl.replay_buffers import reverb_replay_buffer, reverb_utils
from tfrl.savers import whole_checkpoints
from tfrl.specs import tensor_spec
from tfrl.train.loops import episodic_loop, off_policy_loop


def make_environment():
    """Episodes of three steps."""
    environment = test_envs.CountingEnv(3)
    return tf_py_environment.TFPyEnvironment(environment)


def make_dqn_loop(path, jit_compile=False):
    environment = make_environment()
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(),
            seed=0,
        ),
        optimizer=keras.optimizers.Adam(),
        seed=0,
    )
    agent.initialize()
    table = reverb.Table(
        "pairs",
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=1000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tensor_spec.add_outer_dim(agent.collect_data_spec, 2),
    )
    checkpointer = reverb.checkpointers.DefaultCheckpointer(path)
    buffer = reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        "pairs",
        2,
        local_server=reverb.Server([table], checkpointer=checkpointer),
        make_observer=lambda client: reverb_utils.ReverbTrajectorySequenceObserver(
            client, "pairs", 2
        ),
    )
    loop = off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        buffer,
        collect_steps_per_iteration=2,
        train_steps_per_iteration=2,
        initial_collect_steps=10,
        sample_batch_size=4,
        seed=0,
        jit_compile=jit_compile,
    )
    return loop, buffer


@pytest.mark.slow
def test_off_policy_loop_goes_on_with_the_servers_contents(tmp_path):
    with pytest.warns(RuntimeWarning, match="'auto' does not .* a ReverbReplayBuffer"):
        loop, buffer = make_dqn_loop(tmp_path / "replay", jit_compile="auto")
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, **loop.checkpoint_items())
    for iterations in (1, 4):
        info = loop.run(iterations)
    assert (info.iteration, info.train_steps) == (5, 10)
    assert np.isfinite(info.loss)
    assert loop.samples_from_dataset
    assert loop.trace_count() == 1
    # 20 frames, boundaries included, make 19 pairs.
    buffer.flush()
    assert buffer.num_frames() == 10 + 5 * 2 - 1
    checkpointer.save(5)
    buffer.local_server.stop()

    loop, buffer = make_dqn_loop(tmp_path / "replay")
    assert whole_checkpoints.Checkpointer(
        tmp_path, **loop.checkpoint_items()
    ).restored_path
    assert (loop.iteration, buffer.num_frames()) == (5, 19)
    assert loop.run(2).train_steps == 14
    buffer.flush()
    # The first frame after the restart goes on from nothing.
    assert buffer.num_frames() == 19 + 2 * 2 - 1
    buffer.local_server.stop()


def kill(buffer):
    os.kill(buffer.local_server._process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_off_policy_loop_tells_that_its_server_has_died(tmp_path):
    loop, buffer = make_dqn_loop(tmp_path)
    loop.run(1)
    kill(buffer)
    with pytest.raises(reverb.ReplayUnavailable, match="has died with exit code -9"):
        loop.run(10)
    buffer.local_server.stop()


def test_no_compiled_program_calls_a_server(tmp_path):
    with pytest.raises(ValueError, match="jit_compile: got True for a ReverbReplay"):
        make_dqn_loop(tmp_path, jit_compile=True)


@pytest.mark.slow
def test_episodic_loop_trains_with_the_episodes_in_a_queue():
    environment = make_environment()
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor_distribution_network.ActorDistributionNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(),
            seed=0,
        ),
        optimizer=keras.optimizers.Adam(),
        seed=0,
    )
    agent.initialize()
    table = reverb.Table.queue(
        "episodes", 10, signature=tensor_spec.add_outer_dim(agent.collect_data_spec)
    )
    buffer = reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        "episodes",
        None,
        local_server=reverb.Server([table]),
        make_observer=lambda client: reverb_utils.ReverbAddEpisodeObserver(
            client, "episodes", 10
        ),
    )
    seen = []
    train = agent.train

    def note(experience):
        tf.numpy_function(
            lambda o: seen.append(o.tolist()), [experience.observation], []
        )
        return train(experience)

    agent.train = note
    loop = episodic_loop.EpisodicLoop(
        environment, agent, buffer, collect_episodes_per_iteration=2, seed=0
    )
    info = loop.run(2)
    assert (info.train_steps, info.episodes, info.environment_steps) == (2, 4, 12)
    assert np.isfinite(info.loss)
    # The second episode of an iteration ends without the frame of the reset after it.
    assert [[row[:3] for row in batch] for batch in seen] == [
        [[0, 1, 2], [10, 11, 12]],
        [[20, 21, 22], [30, 31, 32]],
    ]
    assert buffer.num_frames() == 0
    kill(buffer)
    with pytest.raises(reverb.ReplayUnavailable, match="has died with exit code -9"):
        loop.run(1)
    buffer.local_server.stop()
