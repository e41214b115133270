"""Vector and nested rewards, from the environment to the metrics and the learner."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tfrl.drivers.dynamic_episode_driver import DynamicEpisodeDriver
from tfrl.drivers.dynamic_step_driver import DynamicStepDriver
from tfrl.drivers.py_driver import PyDriver
from tfrl.environments import utils as environment_utils
from tfrl.environments.batched_py_environment import BatchedPyEnvironment
from tfrl.environments.gymnasium_wrapper import GymnasiumWrapper
from tfrl.environments.tf_py_environment import TFPyEnvironment
from tfrl.environments.wrappers import TimeLimit
from tfrl.metrics import py_metrics, tf_metrics
from tfrl.policies.random_py_policy import RandomPyPolicy
from tfrl.policies.random_tf_policy import RandomTFPolicy
from tfrl.replay_buffers.episodic_replay_buffer import (
    EpisodicReplayBuffer,
    StatefulEpisodicReplayBuffer,
)
from tfrl.replay_buffers.py_uniform_replay_buffer import PyUniformReplayBuffer
from tfrl.replay_buffers.tf_uniform_replay_buffer import TFUniformReplayBuffer
from tfrl.specs import array_spec
from tfrl.testing import CountingEnvironment
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

VECTOR = array_spec.ArraySpec((2,), np.float32, "reward")
NEST = {
    "cost": array_spec.ArraySpec((), np.float32, "cost"),
    "speed": array_spec.ArraySpec((2,), np.float32, "speed"),
}


def race(reward_spec, length):
    """The t-th step is rewarded with the vector `[t, 10]`, and costs 1 if nested."""

    def reward(count, action):
        vector = np.array([count, 10], np.float32)
        is_nested = isinstance(reward_spec, dict)
        return {"cost": np.float32(1), "speed": vector} if is_nested else vector

    return CountingEnvironment(
        length,
        observation_spec=array_spec.BoundedArraySpec((), np.int32, 0, 9),
        reward_spec=reward_spec,
        reward=reward,
    )


def vectors(reward):
    return reward["speed"] if isinstance(reward, dict) else reward


@pytest.fixture(params=[VECTOR, NEST], ids=["vector", "nest"])
def spec(request):
    return request.param


def two_races(spec):
    """Episodes of 2 and 3 steps, returns `[3, 20]` and `[6, 30]`."""
    return BatchedPyEnvironment([race(spec, 2), race(spec, 3)])


def test_environments_with_many_rewards_keep_their_specs(spec):
    environment_utils.validate_py_environment(race(spec, 3))
    environment_utils.validate_py_environment(TimeLimit(race(spec, 9), 2))


def test_a_driver_brings_rewards_to_buffer_metrics_and_transitions(spec):
    env = TFPyEnvironment(two_races(spec))
    policy = RandomTFPolicy(env.time_step_spec(), env.action_spec())
    buffer = TFUniformReplayBuffer(policy.collect_data_spec, 2, max_length=20)
    total = tf_metrics.AverageReturnMetric(batch_size=2, buffer_size=2)
    each = tf_metrics.AverageReturnMultiMetric(
        env.reward_spec(), batch_size=2, buffer_size=2
    )
    driver = DynamicStepDriver(
        env, policy, observers=[buffer.add_batch, total, each], num_steps=5
    )
    for _ in range(2):
        time_step, _ = driver.run()
    tf.nest.map_structure(
        lambda reward, spec: tf.TensorShape([2, *spec.shape]).assert_is_compatible_with(
            reward.shape
        ),
        time_step.reward,
        spec,
    )

    # The last two episodes are one of each member.
    cost = 2.5 if isinstance(spec, dict) else 0
    assert vectors(each.result()).numpy().tolist() == [4.5, 25]
    assert total.result() == 4.5 + 25 + cost

    frames = buffer.gather_all()
    first_race = vectors(frames.reward)[0, :3].numpy().tolist()
    assert first_race == [[1, 10], [2, 10], [0, 0]]
    dataset = buffer.as_dataset(sample_batch_size=4, num_steps=2)
    experience, _ = next(iter(dataset))
    transition = trajectory.experience_to_transitions(experience, squeeze_time_dim=True)
    np.testing.assert_array_equal(
        vectors(transition.next_time_step.reward), vectors(experience.reward)[:, 0]
    )
    assert driver._traced_loop.experimental_get_tracing_count() == 1


def test_episodes_are_stored_whole(spec):
    env = TFPyEnvironment(race(spec, 3))
    policy = RandomTFPolicy(env.time_step_spec(), env.action_spec())
    episodes = EpisodicReplayBuffer(policy.collect_data_spec, capacity=9)
    buffer = StatefulEpisodicReplayBuffer(episodes, num_episodes=1)
    DynamicEpisodeDriver(env, policy, [buffer.add_batch], num_episodes=2).run()
    episode, _ = next(iter(episodes.as_dataset(num_steps=3)))
    assert vectors(episode.reward).shape == (3, 2)


def test_python_drivers_buffers_and_metrics(spec):
    env = race(spec, 3)
    policy = RandomPyPolicy(env.time_step_spec(), env.action_spec())
    buffer = PyUniformReplayBuffer(policy.collect_data_spec, capacity=10)
    metric = py_metrics.AverageReturnMetric()

    def add(frame):
        buffer.add_batch(tf.nest.map_structure(lambda x: np.expand_dims(x, 0), frame))

    PyDriver(env, policy, [add, metric], max_episodes=1).run(env.reset())
    assert metric.result() == 36 + (3 if isinstance(spec, dict) else 0)
    frames = next(iter(buffer.as_dataset(sample_batch_size=2, num_steps=2)))
    assert vectors(frames.reward).shape == (2, 2, 2)


def test_members_that_end_at_different_times_are_kept_apart(spec):
    env = two_races(spec)
    policy = RandomPyPolicy(env.time_step_spec(), env.action_spec())
    metric = py_metrics.AverageReturnMetric(buffer_size=2)
    PyDriver(env, policy, [metric], max_episodes=2).run(env.reset())
    cost = 2.5 if isinstance(spec, dict) else 0
    assert metric.result() == 4.5 + 25 + cost


class TwoGoals(gymnasium.Env):
    """Gives vectors, as the environments of MO-Gymnasium do."""

    observation_space = gymnasium.spaces.Discrete(9)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.second = 10.0

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 1, np.array([action, self.second]), False, False, {}


def test_gymnasium_environments_may_give_vectors():
    game = TwoGoals()
    env = GymnasiumWrapper(game, reward_spec=VECTOR)
    environment_utils.validate_py_environment(TimeLimit(env, 3))
    assert env.reset().reward.tolist() == [0, 0]
    time_step = env.step(np.int64(1))
    assert time_step.reward.tolist() == [1, 10]
    assert time_step.reward.dtype == np.float32
    assert time_step.step_type == ts.StepType.MID
    game.second = np.nan
    with pytest.raises(
        ValueError, match=r"reward: got NaN at index \[1\] from TwoGoals"
    ):
        env.step(np.int64(1))
