"""The time limits of environments, which wrappers, specs or dynamics hold."""

import gymnasium
import pytest

from tests.environments.endless import Endless, limited
from tfrl import environments
from tfrl.environments import time_limits


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (lambda: environments.suite_gym.wrap_env(limited()), 70),
        (lambda: environments.suite_gym.wrap_env(Endless()), None),
        (
            lambda: environments.wrappers.ActionRepeat(
                environments.wrappers.TimeLimit(
                    environments.suite_gym.wrap_env(Endless()), 31
                ),
                2,
            ),
            16,
        ),
        (
            lambda: environments.VectorPyEnvironment(
                gymnasium.vector.SyncVectorEnv([limited] * 2)
            ),
            70,
        ),
        (lambda: environments.suite_gym.load("MountainCar-v0"), 200),
    ],
)
def test_the_limit_of_an_environment_is_found_through_its_wrappers(make, limit):
    environment = make()
    assert time_limits.find(environment) == limit
    assert time_limits.find(environments.TFPyEnvironment(environment)) == limit
    if not environment.batched:
        batch = environments.BatchedPyEnvironment([environment])
        assert time_limits.find(batch) == limit


def test_environments_in_tensorflow_have_the_limit_of_their_dynamics():
    load = environments.native.load
    assert time_limits.find(load("CartPole-v1")) == 500
    assert time_limits.find(load("CartPole-v1", max_episode_steps=0)) is None


def test_limits_are_found_in_padded_and_in_wrapped_environments():
    bare = environments.suite_gym.wrap_env(Endless())
    assert time_limits.find(environments.wrappers.FixedLength(bare, 50)) == 50
    native = environments.native.load("CartPole-v1")
    assert time_limits.find(environments.tf_wrappers.OneHotActionWrapper(native)) == 500
