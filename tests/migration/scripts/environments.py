"""A Python environment of one's own, wrappers, and TensorFlow environments."""

import numpy as np
import tensorflow as tf
from tf_agents.environments import (
    py_environment,
    suite_gym,
    tf_environment,
    tf_py_environment,
    utils,
    wrappers,
)
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts


class Countdown(py_environment.PyEnvironment):
    """Stop (1) as late as you dare: the reward is the steps waited, 0 at the end."""

    def __init__(self):
        super().__init__()
        self._action_spec = array_spec.BoundedArraySpec(
            shape=(), dtype=np.int32, minimum=0, maximum=1, name="action"
        )
        self._observation_spec = array_spec.BoundedArraySpec(
            shape=(1,), dtype=np.int32, minimum=0, maximum=10, name="observation"
        )
        self._left = 10
        self._episode_ended = False

    def action_spec(self):
        return self._action_spec

    def observation_spec(self):
        return self._observation_spec

    def _reset(self):
        self._left = 10
        self._episode_ended = False
        return ts.restart(np.array([self._left], dtype=np.int32))

    def _step(self, action):
        if self._episode_ended:
            return self.reset()
        observation = np.array([self._left - 1], dtype=np.int32)
        if action == 1:
            self._episode_ended = True
            return ts.termination(
                np.array([self._left], dtype=np.int32), reward=10.0 - self._left
            )
        self._left -= 1
        if self._left == 0:
            self._episode_ended = True
            return ts.termination(observation, reward=0.0)
        return ts.transition(observation, reward=0.0, discount=1.0)


environment = Countdown()
utils.validate_py_environment(environment, episodes=5)

time_step = environment.reset()
total = time_step.reward
for action in (0, 0, 0, 1):
    time_step = environment.step(np.array(action, dtype=np.int32))
    total += time_step.reward
assert time_step.is_last()
assert total == 3.0

cartpole = suite_gym.load("CartPole-v0")
assert cartpole.time_step_spec().observation.shape == (4,)
assert isinstance(cartpole, wrappers.TimeLimit)
assert cartpole.action_spec().maximum == 1

pendulum = suite_gym.load("Pendulum-v1")
discrete = wrappers.ActionDiscretizeWrapper(pendulum, num_actions=5)
assert discrete.action_spec().maximum == 4
assert wrappers.RunStats(discrete).reset().is_first()

tf_env = tf_py_environment.TFPyEnvironment(environment)
assert isinstance(tf_env, tf_environment.TFEnvironment)
assert tensor_spec.is_discrete(tf_env.action_spec())

rewards, steps, number_of_episodes = [], [], 5
for _ in range(number_of_episodes):
    time_step = tf_env.reset()
    episode_reward, episode_steps = 0, 0
    while not time_step.is_last():
        action = tf.random.uniform([1], 0, 2, dtype=tf.int32)
        time_step = tf_env.step(action)
        episode_steps += 1
        episode_reward += time_step.reward.numpy()
    rewards.append(episode_reward)
    steps.append(episode_steps)
assert len(rewards) == 5
assert 0 <= np.mean(rewards) <= 9
