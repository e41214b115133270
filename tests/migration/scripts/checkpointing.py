"""Checkpoints of agent, buffer and counter; policies saved and loaded."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import suite_gym, tf_py_environment
from tf_agents.eval import metric_utils
from tf_agents.metrics import tf_metrics
from tf_agents.networks import q_network
from tf_agents.policies import policy_saver, py_tf_eager_policy, random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import common

temporary = tempfile.mkdtemp()
fc_layer_params = (100,)
collect_steps_per_iteration = 20
train_env = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))


def make_agent(counter):
    net = q_network.QNetwork(
        train_env.observation_spec(),
        train_env.action_spec(),
        fc_layer_params=fc_layer_params,
    )
    agent = dqn_agent.DqnAgent(
        train_env.time_step_spec(),
        train_env.action_spec(),
        q_network=net,
        optimizer=tf.compat.v1.train.AdamOptimizer(learning_rate=1e-3),
        td_errors_loss_fn=common.element_wise_squared_loss,
        train_step_counter=counter,
    )
    agent.initialize()
    return agent


def make_buffer(agent):
    return tf_uniform_replay_buffer.TFUniformReplayBuffer(
        data_spec=agent.collect_data_spec,
        batch_size=train_env.batch_size,
        max_length=1000,
    )


global_step = tf.Variable(0, dtype=tf.int64)
agent = make_agent(global_step)
replay_buffer = make_buffer(agent)
collect_driver = dynamic_step_driver.DynamicStepDriver(
    train_env,
    agent.collect_policy,
    observers=[replay_buffer.add_batch],
    num_steps=collect_steps_per_iteration,
)
initial_collect_policy = random_tf_policy.RandomTFPolicy(
    train_env.time_step_spec(), train_env.action_spec()
)
dynamic_step_driver.DynamicStepDriver(
    train_env, initial_collect_policy, [replay_buffer.add_batch], num_steps=100
).run()
dataset = replay_buffer.as_dataset(
    num_parallel_calls=3, sample_batch_size=64, num_steps=2
).prefetch(3)
iterator = iter(dataset)
agent.train = common.function(agent.train)


def train_one_iteration():
    collect_driver.run()
    experience, _ = next(iterator)
    return agent.train(experience)


checkpoint_dir = os.path.join(temporary, "checkpoint")
train_checkpointer = common.Checkpointer(
    ckpt_dir=checkpoint_dir,
    max_to_keep=1,
    agent=agent,
    policy=agent.policy,
    replay_buffer=replay_buffer,
    global_step=global_step,
)
for _ in range(3):
    train_one_iteration()
train_checkpointer.save(global_step)

# All of it again, as after a restart.
restored_step = tf.Variable(0, dtype=tf.int64)
restored_agent = make_agent(restored_step)
restored_buffer = make_buffer(restored_agent)
restored = common.Checkpointer(
    ckpt_dir=checkpoint_dir,
    max_to_keep=1,
    agent=restored_agent,
    policy=restored_agent.policy,
    replay_buffer=restored_buffer,
    global_step=restored_step,
)
assert restored.checkpoint_exists
restored.initialize_or_restore()
assert restored_step.numpy() == 3
assert restored_buffer.num_frames().numpy() == replay_buffer.num_frames().numpy()

# Policies.
policy_dir = os.path.join(temporary, "policy")
saver = policy_saver.PolicySaver(agent.policy, batch_size=None)
saver.save(policy_dir)
saved_policy = tf.saved_model.load(policy_dir)
observations = tf.random.normal([5, 4])
time_step = ts.restart(observations, batch_size=5)
expected = agent.policy.action(time_step).action.numpy()
assert (saved_policy.action(time_step).action.numpy() == expected).all()
assert (restored_agent.policy.action(time_step).action.numpy() == expected).all()
assert saved_policy.get_initial_state(batch_size=5) == ()

py_env = suite_gym.load("CartPole-v0")
eager = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
    policy_dir, py_env.time_step_spec(), py_env.action_spec()
)
py_step = py_env.reset()
assert eager.action(py_step).action in (0, 1)

results = metric_utils.eager_compute(
    [tf_metrics.AverageReturnMetric(), tf_metrics.AverageEpisodeLengthMetric()],
    tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0")),
    agent.policy,
    num_episodes=2,
)
assert np.isclose(
    results["AverageReturn"].numpy(), results["AverageEpisodeLength"].numpy()
)
