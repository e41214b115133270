"""What the REINFORCE tutorial does with a replay server, briefly and in full."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service as reverb
from tfrl.agents.reinforce import reinforce_agent
from tfrl.drivers import py_driver
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.networks import actor_distribution_network
from tfrl.policies import py_tf_eager_policy
from tfrl.replay_buffers import reverb_replay_buffer, reverb_utils
from tfrl.specs import tensor_spec
from tfrl.utils import common

_CAPACITY = 2000


def _make_agent(environment, seed):
    actor = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=(100,),
        seed=seed,
    )
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor,
        optimizer=tf.keras.optimizers.Adam(learning_rate=1e-3),
        normalize_returns=True,
        train_step_counter=tf.Variable(0),
        seed=seed,
    )
    agent.initialize()
    return agent


def _make_replay(agent, seed):
    signature = tensor_spec.add_outer_dim(
        tensor_spec.from_spec(agent.collect_data_spec)
    )
    table = reverb.Table(
        "uniform_table",
        max_size=_CAPACITY,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signature,
    )
    buffer = reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        table_name="uniform_table",
        sequence_length=None,
        local_server=reverb.Server([table], seed=seed),
    )
    observer = reverb_utils.ReverbAddEpisodeObserver(
        buffer.py_client, "uniform_table", _CAPACITY
    )
    return buffer, observer


def _mean_return(environment, policy, num_episodes):
    earned = 0.0
    for _ in range(num_episodes):
        now = environment.reset()
        while not now.is_last():
            now = environment.step(policy.action(now).action)
            earned += float(now.reward[0])
    return earned / num_episodes


def _iterate(agent, buffer, observer, environment):
    """One iteration; returns what it trained with, and the loss."""
    driver = py_driver.PyDriver(
        environment,
        py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
        [observer],
        max_episodes=2,
    )
    driver.run(environment.reset())
    episodes, _ = next(iter(buffer.as_dataset(sample_batch_size=1)))
    loss_info = agent.train(experience=episodes)
    return episodes, loss_info.loss


@pytest.mark.slow
def test_iterations_with_a_replay_server():
    environment = suite_gym.load("CartPole-v0")
    agent = _make_agent(tf_py_environment.TFPyEnvironment(environment), seed=0)
    agent.train = common.function(agent.train)
    buffer, observer = _make_replay(agent, seed=0)
    assert buffer.capacity == _CAPACITY
    for iteration in range(3):
        episodes, loss = _iterate(agent, buffer, observer, environment)
        assert buffer.num_frames() == 2
        length = episodes.reward.shape[1]
        assert episodes.observation.shape == (1, length, 4)
        assert episodes.is_first().numpy()[0].tolist() == [True] + [False] * (
            length - 1
        )
        assert episodes.is_last().numpy()[0].nonzero()[0].tolist() == [length - 2]
        assert episodes.is_boundary().numpy()[0].nonzero()[0].tolist() == [length - 1]
        np.testing.assert_array_equal(episodes.reward[0, :-1], 1.0)
        assert np.isfinite(loss)
        buffer.clear()
        assert buffer.num_frames() == 0
        assert int(agent.train_step_counter) == iteration + 1
    assert agent.train.experimental_get_tracing_count() <= 2
    buffer.local_server.stop()


def _train(seed):
    """The tutorial in full; returns the mean returns after every 50 iterations."""
    environment, eval_environment = (suite_gym.load("CartPole-v0") for _ in range(2))
    environment.seed(seed)
    eval_environment.seed(100 + seed)
    eval_environment = tf_py_environment.TFPyEnvironment(eval_environment)
    agent = _make_agent(eval_environment, seed)
    agent.train = common.function(agent.train)
    buffer, observer = _make_replay(agent, seed)
    returns = []
    for iteration in range(1, 251):
        _iterate(agent, buffer, observer, environment)
        buffer.clear()
        if iteration % 50 == 0:
            returns.append(_mean_return(eval_environment, agent.policy, 10))
    buffer.local_server.stop()
    return returns


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tutorial_comes_to_a_return_of_200():
    # It learns from one episode an iteration, so seeds differ; TF-Agents ended at 195,
    # 182 and 181, and this at 120 to 200.
    returns = np.array([_train(seed) for seed in range(3)])
    print(f"average returns {returns.tolist()}")
    assert returns.max() >= 195
    assert returns[:, -1].min() >= 100
