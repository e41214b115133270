"""Once warm, a loop traces nothing more and takes no more memory."""

import keras
import pytest

from tests.train import memory
from tfrl import train
from tfrl.agents.dqn import dqn_agent
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.networks import actor_distribution_network, q_network
from tfrl.replay_buffers import tf_prioritized_replay_buffer, tf_uniform_replay_buffer


def cart_pole():
    environment = suite_gym.load("CartPole-v1", max_episode_steps=2)
    environment.seed(0)
    return tf_py_environment.TFPyEnvironment(environment)


def buffer_for(agent, make=tf_uniform_replay_buffer.TFUniformReplayBuffer):
    return make(agent.collect_data_spec, batch_size=1, max_length=500)


def off_policy_loop(
    sampling, make_buffer=tf_uniform_replay_buffer.TFUniformReplayBuffer
):
    environment = cart_pole()
    network = q_network.QNetwork(
        environment.observation_spec(), environment.action_spec(), fc_layer_params=()
    )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(1e-3),
    )
    return train.OffPolicyLoop(
        environment,
        agent,
        buffer_for(agent, make_buffer),
        initial_collect_steps=50,
        sampling=sampling,
        seed=0,
    )


def episodic_loop():
    environment = cart_pole()
    network = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(), environment.action_spec(), fc_layer_params=()
    )
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=network,
        optimizer=keras.optimizers.Adam(1e-3),
    )
    return train.EpisodicLoop(environment, agent, buffer_for(agent), seed=0)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: off_policy_loop("dataset"), id="off-policy, dataset"),
        pytest.param(
            lambda: off_policy_loop("variables"),
            id="off-policy, variables",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: off_policy_loop(
                "dataset", tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer
            ),
            id="prioritized",
            marks=pytest.mark.slow,
        ),
        pytest.param(episodic_loop, id="episodic", marks=pytest.mark.slow),
    ],
)
def test_a_thousand_iterations_add_no_trace_and_no_memory(make):
    loop = make()
    for size in (1, 10, 300, 100):
        loop.run(size)
    traces, before = loop.trace_count(), memory.resident_megabytes()
    for _ in range(10):
        loop.run(100)
    assert loop.trace_count() == traces == 1
    assert memory.resident_megabytes() - before < 4
