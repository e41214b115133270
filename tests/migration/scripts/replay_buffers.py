"""A uniform buffer in TensorFlow and one in Python, written by drivers."""

import numpy as np
import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.drivers import dynamic_step_driver, py_driver
from tf_agents.environments import suite_gym, tf_py_environment
from tf_agents.networks import q_network
from tf_agents.policies import random_py_policy
from tf_agents.replay_buffers import py_uniform_replay_buffer, tf_uniform_replay_buffer
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import trajectory
from tf_agents.utils import nest_utils

data_spec = (
    tf.TensorSpec([3], tf.float32, "action"),
    (
        tf.TensorSpec([5], tf.float32, "lidar"),
        tf.TensorSpec([3, 2], tf.float32, "camera"),
    ),
)
batch_size, max_length = 32, 100
replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    data_spec, batch_size=batch_size, max_length=max_length
)
action = tf.constant(1 * np.ones(data_spec[0].shape.as_list(), dtype=np.float32))
lidar = tf.constant(2 * np.ones(data_spec[1][0].shape.as_list(), dtype=np.float32))
camera = tf.constant(3 * np.ones(data_spec[1][1].shape.as_list(), dtype=np.float32))
values = (action, (lidar, camera))
values_batched = tf.nest.map_structure(lambda t: tf.stack([t] * batch_size), values)
replay_buffer.add_batch(values_batched)
assert replay_buffer.capacity == 3200
assert replay_buffer.num_frames().numpy() == 32

for _ in range(5):
    replay_buffer.add_batch(values_batched)
sample, info = replay_buffer.get_next(sample_batch_size=10, num_steps=1)
assert sample[1][1].shape == (10, 1, 3, 2)
assert info.ids.shape == (10, 1)

dataset = replay_buffer.as_dataset(
    sample_batch_size=4, num_steps=2, num_parallel_calls=1
)
iterator = iter(dataset)
for _ in range(3):
    experience, info = next(iterator)
    assert experience[0].shape == (4, 2, 3)
assert replay_buffer.gather_all()[0].shape == (32, 6, 3)
replay_buffer.clear()
assert replay_buffer.num_frames().numpy() == 0

# With a driver.
env = suite_gym.load("CartPole-v0")
tf_env = tf_py_environment.TFPyEnvironment(env)
q_net = q_network.QNetwork(
    tf_env.time_step_spec().observation, tf_env.action_spec(), fc_layer_params=(100,)
)
agent = dqn_agent.DqnAgent(
    tf_env.time_step_spec(),
    tf_env.action_spec(),
    q_network=q_net,
    optimizer=tf.compat.v1.train.AdamOptimizer(0.001),
)
replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    agent.collect_data_spec, batch_size=tf_env.batch_size, max_length=1000
)
driver = dynamic_step_driver.DynamicStepDriver(
    tf_env,
    agent.collect_policy,
    observers=[replay_buffer.add_batch],
    num_steps=10,
)
driver.run()
dataset = replay_buffer.as_dataset(
    sample_batch_size=4, num_steps=2, single_deterministic_pass=False
)
experience, _ = next(iter(dataset))
assert nest_utils.get_outer_shape(experience, agent.collect_data_spec).numpy().tolist()
assert experience.observation.shape == (4, 2, 4)
assert np.isfinite(agent.train(experience=experience).loss.numpy())

# In Python.
env = suite_gym.load("CartPole-v0")
policy = random_py_policy.RandomPyPolicy(env.time_step_spec(), env.action_spec())
py_data_spec = trajectory.Trajectory(
    step_type=env.time_step_spec().step_type,
    observation=env.observation_spec(),
    action=env.action_spec(),
    policy_info=(),
    next_step_type=env.time_step_spec().step_type,
    reward=env.time_step_spec().reward,
    discount=env.time_step_spec().discount,
)
py_buffer = py_uniform_replay_buffer.PyUniformReplayBuffer(
    capacity=200, data_spec=tensor_spec.to_nest_array_spec(py_data_spec)
)


def add(frame):
    py_buffer.add_batch(nest_utils.batch_nested_array(frame))


py_driver.PyDriver(env, policy, [add], max_steps=50).run(env.reset())
assert py_buffer.size >= 50
assert py_buffer.capacity == 200
batch = next(iter(py_buffer.as_dataset(sample_batch_size=8, num_steps=2)))
assert batch.observation.shape == (8, 2, 4)
assert array_spec.is_discrete(env.action_spec())
