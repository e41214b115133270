"""The base classes of a user's bandits, and how drivers and evaluations play them."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import drivers, metrics, policies
from tfrl import eval as evaluation
from tfrl.bandits import environments
from tfrl.bandits.drivers import driver_utils
from tfrl.environments import BatchedPyEnvironment, TFPyEnvironment
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds


class _Doubled(environments.BanditPyEnvironment):
    """The observation counts rounds; the reward is the observation times the action."""

    def __init__(self):
        super().__init__(
            array_spec.ArraySpec([1], np.float32),
            array_spec.BoundedArraySpec([], np.int32, 0, 2),
        )
        self._rounds = 0

    def _observe(self):
        self._rounds += 1
        return np.array([self._rounds], np.float32)

    def _apply_action(self, action):
        return float(self._rounds * action)


class _Noise(environments.BanditTFEnvironment):
    """Rewards are the observation, of random numbers; `total` adds them up."""

    def __init__(self, batch_size=2, seed=None):
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([1], tf.float32)),
            tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2),
            batch_size,
            seed=seed,
        )
        self.total = tf.Variable(tf.zeros([batch_size]), trainable=False)
        self._seen = tf.Variable(tf.zeros([batch_size, 1]), trainable=False)

    def _observe(self):
        self._seen.assign(seeds.uniform(self._next_seed(), [self.batch_size, 1]))
        return self._seen.read_value()

    def _apply_action(self, action):
        del action
        self.total.assign_add(self._seen[:, 0])
        return self._seen[:, 0]


def _policy(environment):
    return policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec(), seed=0
    )


def test_rounds_in_python_follow_each_other_without_resets():
    bandit = TFPyEnvironment(_Doubled())
    assert bandit.is_bandit
    assert bandit.reset().observation.numpy().tolist() == [[1.0]]
    reached = bandit.step([2])
    assert reached.is_last().numpy().all()
    assert reached.reward.numpy() == [2.0]
    assert bandit.step([1]).reward.numpy() == [2.0]


def test_a_batch_of_bandits_is_a_bandit():
    batch = TFPyEnvironment(BatchedPyEnvironment([_Doubled(), _Doubled()]))
    assert batch.is_bandit
    batch.reset()
    batch.step([1, 2])
    np.testing.assert_array_equal(batch.step([1, 2]).reward, [2.0, 4.0])


def test_drivers_show_each_round_as_a_frame_from_first_to_last():
    frames = []
    bandit = TFPyEnvironment(_Doubled())
    driver = drivers.DynamicStepDriver(
        bandit, _policy(bandit), [frames.append], num_steps=3
    )
    driver.run(bandit.reset())
    assert len(frames) == 3
    for i, frame in enumerate(frames):
        assert frame.is_first().numpy().all()
        assert frame.is_last().numpy().all()
        expected = (i + 1) * frame.action.numpy()
        np.testing.assert_array_equal(frame.reward, expected)


@pytest.mark.parametrize("limit", [{"max_steps": 4}, {"max_episodes": 4}])
def test_the_python_driver_counts_rounds(limit):
    bandit, count = _Doubled(), metrics.py_metrics.EnvironmentSteps()
    policy = policies.RandomPyPolicy(
        bandit.time_step_spec(), bandit.action_spec(), seed=0
    )
    drivers.PyDriver(bandit, policy, [count], **limit).run(bandit.reset())
    assert int(count.result()) == 4


def test_an_episode_driver_counts_rounds_as_episodes():
    bandit, count = _Noise(seed=0), metrics.tf_metrics.EnvironmentSteps()
    driver = drivers.DynamicEpisodeDriver(
        bandit, _policy(bandit), [count], num_episodes=6
    )
    driver.run()
    assert int(count.result()) == 6


def test_an_evaluation_has_an_episode_of_one_step_a_round():
    bandit = _Noise(batch_size=4, seed=0)
    result = evaluation.Evaluator(bandit, _policy(bandit), 12, seed=0).run()
    assert result.lengths.tolist() == [1] * 12
    assert result.terminated.all()
    assert result.returns.sum() == pytest.approx(bandit.total.numpy().sum(), rel=1e-5)


def test_rounds_in_tensorflow_have_a_seed_and_a_state():
    bandit = _Noise(seed=3)
    assert bandit.is_seeded
    first = bandit.current_time_step().observation.numpy()
    np.testing.assert_array_equal(bandit.current_time_step().observation, first)
    state = bandit.get_state()
    after = bandit.step([0, 1]).observation.numpy()
    bandit.set_state(state)
    np.testing.assert_array_equal(bandit.step([0, 1]).observation, after)
    with pytest.raises(ValueError, match=r"^state: got arrays of the shapes \[\], exp"):
        bandit.set_state([])
    bandit.seed(3)
    np.testing.assert_array_equal(bandit.reset().observation, first)
    assert (_Noise(seed=4).reset().observation.numpy() != first).all()


def test_rounds_in_tensorflow_compile():
    bandit = _Noise(seed=0)
    play = tf.function(lambda: bandit.step([0, 1]).reward, jit_compile=True)
    expected = bandit.reset().observation[:, 0].numpy()
    np.testing.assert_array_equal(play(), expected)


def test_a_frame_begins_a_round_at_the_last_step_of_the_round_before():
    last = ts.termination(np.ones([2, 1], np.float32), np.array([3.0, 4.0], np.float32))
    reached = ts.termination(
        np.zeros([2, 1], np.float32), np.array([5.0, 6.0], np.float32)
    )
    step = policy_step.PolicyStep(np.array([0, 1], np.int32))
    frame = driver_utils.trajectory_for_bandit(last, step, reached)
    assert frame.is_first().all()
    assert frame.is_last().all()
    np.testing.assert_array_equal(frame.observation, 1.0)
    np.testing.assert_array_equal(frame.reward, [5.0, 6.0])
