"""A Python driver and TensorFlow drivers, with metrics and lists as observers."""

import tensorflow as tf
from tf_agents.drivers import dynamic_episode_driver, dynamic_step_driver, py_driver
from tf_agents.environments import suite_gym, tf_py_environment
from tf_agents.metrics import py_metrics, tf_metrics
from tf_agents.policies import random_py_policy, random_tf_policy

env = suite_gym.load("CartPole-v0")
policy = random_py_policy.RandomPyPolicy(
    time_step_spec=env.time_step_spec(), action_spec=env.action_spec()
)
replay_buffer = []
metric = py_metrics.AverageReturnMetric()
observers = [replay_buffer.append, metric]
driver = py_driver.PyDriver(env, policy, observers, max_steps=20, max_episodes=1)
initial_time_step = env.reset()
final_time_step, _ = driver.run(initial_time_step)
assert 1 <= len(replay_buffer) <= 21
assert replay_buffer[0].is_first()
if final_time_step.is_last():
    assert metric.result() == len(replay_buffer)

env = suite_gym.load("CartPole-v0")
tf_env = tf_py_environment.TFPyEnvironment(env)
tf_policy = random_tf_policy.RandomTFPolicy(
    action_spec=tf_env.action_spec(), time_step_spec=tf_env.time_step_spec()
)
num_episodes = tf_metrics.NumberOfEpisodes()
env_steps = tf_metrics.EnvironmentSteps()
driver = dynamic_episode_driver.DynamicEpisodeDriver(
    tf_env, tf_policy, [num_episodes, env_steps], num_episodes=2
)
final_time_step, policy_state = driver.run()
assert num_episodes.result().numpy() == 2
assert env_steps.result().numpy() >= 2 * 8
assert policy_state == ()

num_episodes.reset()
final_time_step, _ = driver.run(final_time_step, policy_state)
assert num_episodes.result().numpy() == 2

env_steps.reset()
step_driver = dynamic_step_driver.DynamicStepDriver(
    tf_env, tf_policy, observers=[env_steps], num_steps=30
)
run = tf.function(step_driver.run)
run()
assert env_steps.result().numpy() == 30
