"""REINFORCE on CartPole: whole episodes, trained on and forgotten."""

import numpy as np
import tensorflow as tf
from tf_agents.agents.reinforce import reinforce_agent
from tf_agents.drivers import dynamic_episode_driver
from tf_agents.environments import suite_gym, tf_py_environment
from tf_agents.metrics import tf_metrics
from tf_agents.networks import actor_distribution_network, value_network
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.utils import common

num_iterations = 10
collect_episodes_per_iteration = 2
train_env = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
actor_net = actor_distribution_network.ActorDistributionNetwork(
    train_env.observation_spec(), train_env.action_spec(), fc_layer_params=(100,)
)
value_net = value_network.ValueNetwork(
    train_env.observation_spec(), fc_layer_params=(100,)
)
agent = reinforce_agent.ReinforceAgent(
    train_env.time_step_spec(),
    train_env.action_spec(),
    actor_network=actor_net,
    value_network=value_net,
    optimizer=tf.compat.v1.train.AdamOptimizer(learning_rate=1e-3),
    normalize_returns=True,
    gamma=0.99,
    entropy_regularization=0.01,
    train_step_counter=tf.compat.v2.Variable(0),
)
agent.initialize()
replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    data_spec=agent.collect_data_spec,
    batch_size=train_env.batch_size,
    max_length=2000,
)
average_return = tf_metrics.AverageReturnMetric(buffer_size=20)
driver = dynamic_episode_driver.DynamicEpisodeDriver(
    train_env,
    agent.collect_policy,
    observers=[replay_buffer.add_batch, average_return],
    num_episodes=collect_episodes_per_iteration,
)
agent.train = common.function(agent.train)
before = [v.numpy().copy() for v in actor_net.variables]
for _ in range(num_iterations):
    driver.run()
    experience = replay_buffer.gather_all()
    train_loss = agent.train(experience)
    replay_buffer.clear()
assert agent.train_step_counter.numpy() == num_iterations
assert np.isfinite(train_loss.loss.numpy())
assert 8 <= average_return.result().numpy() <= 200
assert not np.allclose(before[0], actor_net.variables[0].numpy())
