"""Classic control, toy text and Gymnasium's wrappers continue bit for bit."""

import functools

import gymnasium
import numpy as np
import pytest

from tfrl.environments import py_environment, suite_gym
from tfrl.environments.gymnasium import vector_py_environment

ENVIRONMENTS = (
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v1",
    "CliffWalkingSlippery-v1",
    "FrozenLake-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Taxi-v4",
)
wrappers = gymnasium.wrappers
PENDULUM_WRAPPERS = {
    "Autoreset": wrappers.Autoreset,
    "ClipAction": wrappers.ClipAction,
    "DelayObservation": lambda env: wrappers.DelayObservation(env, 3),
    "FrameStackObservation": lambda env: wrappers.FrameStackObservation(env, 4),
    "FrameStack of zeros": lambda env: wrappers.FrameStackObservation(
        env, 4, padding_type="zero"
    ),
    "MaxAndSkipObservation": lambda env: wrappers.MaxAndSkipObservation(env, 4),
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "PassiveEnvChecker": wrappers.PassiveEnvChecker,
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "RescaleAction": lambda env: wrappers.RescaleAction(env, -1, 1),
    "StickyAction": lambda env: wrappers.StickyAction(env, 0.5, (2, 4)),
    "TimeAwareObservation": lambda env: wrappers.TimeAwareObservation(
        wrappers.TimeLimit(env, 9)
    ),
    "TimeLimit": lambda env: wrappers.TimeLimit(env, 7),
}


@pytest.mark.parametrize("steps", [0, 1, 30])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_continues_bit_for_bit(name, steps, check_resuming):
    # Several short episodes, so that new ones begin from restored random numbers.
    make = functools.partial(suite_gym.load, name, max_episode_steps=17)
    time_steps = check_resuming(make, steps)
    assert sum(bool(time_step.is_first()) for time_step in time_steps) > 1


@pytest.mark.parametrize("steps", [0, 1, 17, 30])
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_a_batch_continues_bit_for_bit(name, steps, check_resuming):
    make = functools.partial(vector_py_environment.load, name, 3, max_episode_steps=17)
    check_resuming(make, steps)


@pytest.mark.parametrize("name", PENDULUM_WRAPPERS)
def test_a_wrapper_continues_bit_for_bit(name, check_resuming):
    def make():
        return suite_gym.load(
            "Pendulum-v1",
            max_episode_steps=17,
            gym_env_wrappers=[PENDULUM_WRAPPERS[name], wrappers.OrderEnforcing],
        )

    check_resuming(make)


@pytest.mark.parametrize(
    "name", ["NormalizeObservation", "NormalizeReward", "RecordEpisodeStatistics"]
)
def test_a_wrapper_of_a_batch_continues_bit_for_bit(name, check_resuming):
    def make():
        batch = gymnasium.make_vec(
            "Pendulum-v1", 3, vectorization_mode="sync", max_episode_steps=17
        )
        return vector_py_environment.VectorPyEnvironment(
            getattr(wrappers.vector, name)(batch)
        )

    check_resuming(make)


def test_statistics_of_episodes_go_on():
    def make():
        return suite_gym.load(
            "CartPole-v1", gym_env_wrappers=[wrappers.RecordEpisodeStatistics]
        )

    environment, other = make(), make()
    for _ in range(30):
        environment.step(0)
    statistics = environment.gym
    assert statistics.episode_count > 1
    py_environment.restore_state(other, py_environment.capture_state(environment))
    restored = other.gym
    assert restored.episode_count == statistics.episode_count
    assert restored.return_queue == statistics.return_queue
    assert restored.return_queue is not statistics.return_queue
    assert restored.return_queue.maxlen == statistics.return_queue.maxlen
    assert restored.episode_start_time == pytest.approx(
        statistics.episode_start_time, abs=5
    )


def test_a_running_mean_stops_where_it_stopped():
    def make():
        return suite_gym.load(
            "CartPole-v1", gym_env_wrappers=[wrappers.NormalizeObservation]
        )

    environment, other = make(), make()
    environment.reset()
    environment.gym.update_running_mean = False
    py_environment.restore_state(other, py_environment.capture_state(environment))
    assert not other.gym.update_running_mean
    np.testing.assert_array_equal(other.gym.obs_rms.mean, environment.gym.obs_rms.mean)
    assert other.gym.obs_rms is not environment.gym.obs_rms


def test_the_state_of_another_frozen_lake_is_refused():
    small, large = (
        suite_gym.load("FrozenLake-v1", gym_kwargs={"map_name": name})
        for name in ("4x4", "8x8")
    )
    small.reset()
    with pytest.raises(
        ValueError, match=r"state: got the state of the map .* same desc"
    ):
        large.set_state(small.get_state())


def test_a_wrapper_that_keeps_its_state_elsewhere_has_none(monkeypatch):
    environment = suite_gym.load(
        "CartPole-v1", gym_env_wrappers=[lambda env: wrappers.TimeLimit(env, 3)]
    )
    environment.reset()
    del environment.gym._elapsed_steps
    with pytest.raises(
        NotImplementedError,
        match=r"TimeLimit\.get_state: .*_elapsed_steps.*state_adapters\.register",
    ):
        environment.get_state()


def test_processes_of_gymnasium_have_no_state():
    environment = vector_py_environment.load(
        "CartPole-v1", 2, vectorization_mode="async"
    )
    try:
        environment.reset()
        with pytest.raises(NotImplementedError, match=r"use ParallelPyEnvironment, or"):
            environment.get_state()
    finally:
        environment.close()
