"""Loops of recurrent agents resume from a checkpoint in the middle of an episode."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.agents import DqnAgent, ReinforceAgent
from tfrl.environments import BatchedPyEnvironment, TFPyEnvironment
from tfrl.networks import ActorDistributionRnnNetwork, QRnnNetwork
from tfrl.replay_buffers import TFUniformReplayBuffer
from tfrl.train import EpisodicLoop, OffPolicyLoop

SMALL = {
    "input_fc_layer_params": None,
    "lstm_size": (4,),
    "output_fc_layer_params": None,
}


def make_parts(make_agent):
    """Two environments whose episodes do not end together, the agent, and a buffer."""
    environment = TFPyEnvironment(
        BatchedPyEnvironment(
            [
                testing.RecallEnvironment(length, delay=1, seed=seed)
                for seed, length in enumerate((9, 13))
            ],
            multithreading=False,
        )
    )
    agent = make_agent(
        environment.time_step_spec(),
        environment.observation_spec(),
        environment.action_spec(),
    )
    agent.initialize()
    replay_buffer = TFUniformReplayBuffer(agent.collect_data_spec, 2, 50, seed=3)
    return environment, agent, replay_buffer


def off_policy():
    def make_agent(time_step, observation, action):
        return DqnAgent(
            time_step,
            action,
            QRnnNetwork(observation, action, **SMALL, seed=3),
            keras.optimizers.Adam(1e-2),
            epsilon_greedy=0.3,
            target_update_period=3,
            seed=3,
        )

    return OffPolicyLoop(
        *make_parts(make_agent),
        initial_collect_steps=12,
        sample_batch_size=4,
        sequence_length=4,
        seed=3,
    )


def episodic():
    def make_agent(time_step, observation, action):
        return ReinforceAgent(
            time_step,
            action,
            ActorDistributionRnnNetwork(observation, action, **SMALL, seed=3),
            keras.optimizers.Adam(1e-2),
            seed=3,
        )

    return EpisodicLoop(
        *make_parts(make_agent), collect_episodes_per_iteration=2, seed=3
    )


def assert_same(loop, other):
    """The same place in the episodes, the same memory, weights and counters."""
    for ours, theirs in zip(
        tf.nest.flatten([loop._position.get(), loop.agent.variables()]),
        tf.nest.flatten([other._position.get(), other.agent.variables()]),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert loop.info() == pytest.approx(other.info(), abs=0, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make_loop", [off_policy, pytest.param(episodic, marks=pytest.mark.slow)]
)
def test_a_restored_recurrent_loop_goes_on_bit_for_bit(make_loop, tmp_path):
    whole = make_loop()
    whole.run(5)
    time_step, memory = whole._position.get()
    # One of the two environments is in mid-episode, and its policy remembers it.
    (member,) = np.flatnonzero(time_step.is_mid())[:1]
    assert all(np.any(state[member] != 0) for state in tf.nest.flatten(memory))
    path = tf.train.Checkpoint(**whole.checkpoint_items()).write(str(tmp_path / "c"))
    restored = make_loop()
    tf.train.Checkpoint(**restored.checkpoint_items()).read(path)
    assert_same(restored, whole)
    # At once, before a new episode forgets what was remembered, and in the long run.
    for iterations in (1, 20):
        whole.run(iterations)
        restored.run(iterations)
        assert_same(restored, whole)
    assert restored.trace_count() == 1
