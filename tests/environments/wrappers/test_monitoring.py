import cProfile
import pstats

import gymnasium
import numpy as np
import pytest

from tfrl.environments import suite_gym, wrappers
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.environments.gymnasium_wrapper import GymnasiumWrapper


def step_types(environment, steps):
    return [int(environment.step(0).step_type) for _ in range(steps)]


def test_run_stats_counts_steps_episodes_and_resets(scripted):
    environment = wrappers.RunStats(scripted(length=3))
    assert step_types(environment, 6) == [0, 1, 1, 2, 0, 1]
    assert environment.resets == 2
    assert environment.episodes == 1
    assert environment.total_steps == 4
    assert environment.episode_steps == 1


def test_run_stats_counts_all_members_of_a_batch(scripted, batch_of):
    environment = wrappers.RunStats(batch_of(scripted(length=1), scripted(length=2)))
    for _ in range(4):
        environment.step(np.zeros(2, np.int32))
    # Member 0: FIRST LAST FIRST LAST; member 1: FIRST MID LAST FIRST.
    assert environment.resets == 4
    assert environment.episodes == 3
    assert environment.total_steps == 4
    assert environment.episode_steps.tolist() == [1, 0]


def test_run_stats_go_on_where_they_were(scripted):
    environment = wrappers.RunStats(scripted(length=3))
    step_types(environment, 6)
    resumed = wrappers.RunStats(scripted(length=3))
    resumed.set_state(environment.get_state())
    assert (resumed.resets, resumed.episodes, resumed.total_steps) == (2, 1, 4)
    assert resumed.episode_steps == 1


class Reaching(gymnasium.Env):
    """An episode of two steps, which succeeds where both actions were 1."""

    observation_space = gymnasium.spaces.Box(0, 2, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._actions = []
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._actions.append(int(action))
        ended = len(self._actions) == 2
        info = {"is_success": all(self._actions)} if ended else {}
        return np.ones(1, np.float32), 0.0, ended, False, info


def test_the_infos_of_episodes_ends_are_kept():
    environment = wrappers.EpisodeInfo(
        GymnasiumWrapper(Reaching()), "is_success", num_episodes=3
    )
    environment.reset()
    assert np.isnan(environment.mean())
    means = []
    for first, second in ((1, 1), (1, 0), (0, 1), (0, 0)):
        environment.step(first)
        environment.step(second)
        means.append(environment.mean())
        environment.step(0)  # A boundary.
    np.testing.assert_allclose(means, [1, 1 / 2, 1 / 3, 0])


@pytest.mark.parametrize("kind", ["vector", "batch"])
def test_each_member_of_a_batch_adds_the_infos_of_its_episodes(kind, batch_of):
    """A success, a failure and a success end at the second step."""
    members = [Reaching, Reaching, Reaching]
    if kind == "vector":
        batch = vector_py_environment.VectorPyEnvironment(
            gymnasium.vector.SyncVectorEnv(members)
        )
    else:
        batch = batch_of(*(GymnasiumWrapper(make()) for make in members))
    environment = wrappers.EpisodeInfo(batch, "is_success")
    environment.reset()
    environment.step(np.array([1, 0, 1]))
    assert np.isnan(environment.mean())
    environment.step(np.array([1, 1, 1]))
    np.testing.assert_allclose(environment.mean(), 2 / 3)


def test_kept_infos_go_on_where_they_were():
    environment = wrappers.EpisodeInfo(
        suite_gym.wrap_env(Reaching()), "is_success", num_episodes=2
    )
    environment._set_wrapper_state([1.0, 0.0])
    other = wrappers.EpisodeInfo(suite_gym.wrap_env(Reaching()), "is_success", 2)
    other._set_wrapper_state(environment._get_wrapper_state())
    assert other.mean() == 0.5


def test_an_info_without_the_number_is_an_error():
    environment = wrappers.EpisodeInfo(GymnasiumWrapper(Reaching()), "reached")
    environment.reset()
    environment.step(1)
    with pytest.raises(ValueError, match=r"'reached', but an episode ended with the i"):
        environment.step(1)


def test_profiler_gives_a_new_profile_every_few_steps(scripted):
    profiles = []
    environment = wrappers.PerformanceProfiler(scripted(length=3), profiles.append, 2)
    assert step_types(environment, 7) == [0, 1, 1, 2, 0, 1, 1]
    # Five steps, and two resets.
    assert len(profiles) == 2
    assert all(isinstance(profile, cProfile.Profile) for profile in profiles)
    assert profiles[0] is not profiles[1]


def test_profiles_hold_the_environments_own_functions(scripted):
    profiles = []
    environment = wrappers.PerformanceProfiler(scripted(), profiles.append, 2)
    step_types(environment, 3)
    calls = {
        function: counts[0]
        for (_, _, function), counts in pstats.Stats(profiles[0]).stats.items()
    }
    assert (calls["_reset"], calls["_step"]) == (1, 2)


def test_profiler_checks_its_arguments(scripted):
    with pytest.raises(TypeError, match="process_profile_fn: got None, expected a fun"):
        wrappers.PerformanceProfiler(scripted(), None, 2)
    with pytest.raises(ValueError, match=r"process_steps: .* got 0"):
        wrappers.PerformanceProfiler(scripted(), print, 0)


def test_a_member_without_the_number_is_an_error(scripted, batch_of):
    class Batch(type(batch_of(scripted(length=1), scripted(length=1)))):
        def get_info(self):
            # As Gymnasium's vector environments: 0 where a member has no number.
            return {"n": np.array([5.0, 0.0]), "_n": np.array([True, False])}

    batch = Batch([scripted(length=1), scripted(length=1)], multithreading=False)
    environment = wrappers.EpisodeInfo(batch, "n")
    environment.reset()
    with pytest.raises(ValueError, match="key: got 'n', but an episode ended"):
        environment.step(np.zeros(2, np.int32))
