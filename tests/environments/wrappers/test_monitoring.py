import cProfile
import pstats

import numpy as np
import pytest

from tfrl.environments import wrappers


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
