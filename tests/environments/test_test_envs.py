import numpy as np
import pytest
import tree

from tfrl.environments import py_environment, test_envs, utils

ENVIRONMENTS = [
    test_envs.CountingEnv,
    test_envs.EpisodeCountingEnv,
    test_envs.NestedCountingEnv,
]


def observations(environment, steps):
    return [
        tree.map_structure(int, environment.step(0).observation) for _ in range(steps)
    ]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.float32])
def test_counting_env_counts_episodes_in_tens(dtype):
    environment = test_envs.CountingEnv(2, dtype)
    assert observations(environment, 7) == [0, 1, 2, 10, 11, 12, 20]
    assert environment.current_time_step().observation.dtype == dtype
    assert environment.action_spec().dtype == dtype


def test_episode_counting_env_counts_apart():
    environment = test_envs.EpisodeCountingEnv(2)
    assert observations(environment, 5) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_nested_counting_env_observes_a_dict():
    environment = test_envs.NestedCountingEnv(1)
    assert observations(environment, 3) == [
        {"total_steps": 0, "current_steps": 0},
        {"total_steps": 1, "current_steps": 1},
        {"total_steps": 10, "current_steps": 0},
    ]
    nested = test_envs.NestedCountingEnv(nested_action=True).action_spec()
    assert set(nested) == {"foo", "bar"}


@pytest.mark.parametrize("make", ENVIRONMENTS)
def test_only_the_last_step_is_rewarded(make):
    environment = make(3)
    steps = [environment.step(0) for _ in range(4)]
    assert [int(step.step_type) for step in steps] == [0, 1, 1, 2]
    assert [float(step.reward) for step in steps] == [0, 0, 0, 1]
    assert [float(step.discount) for step in steps] == [1, 1, 1, 0]


@pytest.mark.parametrize("make", ENVIRONMENTS)
def test_a_reset_in_mid_episode_counts_no_episode(make):
    environment = make(3)
    first = environment.reset()
    environment.step(0)
    assert environment.reset() == first


@pytest.mark.parametrize("make", ENVIRONMENTS)
def test_they_keep_their_specs_and_their_state(make):
    environment = make(3)
    utils.validate_py_environment(environment, 2)
    captured = py_environment.capture_state(environment)
    resumed = make(3)
    py_environment.restore_state(resumed, captured)
    assert observations(resumed, 5) == observations(environment, 5)


@pytest.mark.parametrize("make", ENVIRONMENTS)
def test_an_episode_without_steps_is_an_error(make):
    with pytest.raises(ValueError, match=r"^steps_per_episode: .* got 0; raise it"):
        make(0)
