"""Evaluations end where nothing else ends the episodes."""

import gymnasium
import numpy as np
import pytest

import tfrl
from tfrl import environments, train
from tfrl.algorithms import run_settings, time_limits
from tfrl.environments import extras


class Endless(gymnasium.Env):
    """Its episodes do not end."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}


def limited(steps=70):
    return gymnasium.wrappers.TimeLimit(Endless(), steps)


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (lambda: environments.suite_gym.wrap_env(limited()), 70),
        (lambda: environments.suite_gym.wrap_env(Endless()), None),
        (
            lambda: environments.wrappers.ActionRepeat(
                environments.wrappers.TimeLimit(
                    environments.suite_gym.wrap_env(Endless()), 30
                ),
                2,
            ),
            30,
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


def test_names_say_whether_there_is_a_limit():
    assert time_limits.is_named("MountainCar-v0")
    assert time_limits.is_named("CartPoleNoVel-v1")
    assert time_limits.is_named("BitFlipping5-v0")
    assert not time_limits.is_named("CliffWalking-v1")


@pytest.mark.skipif(not extras.is_installed("minigrid"), reason="needs tfrl[minigrid]")
def test_grids_end_their_episodes_themselves():
    assert time_limits.is_named("MiniGrid-Empty-5x5-v0")


def settings_of(environment):
    algorithm = tfrl.DQN(environment, fc_layer_params=(4,), num_eval_episodes=2)
    return run_settings.make(
        algorithm.world,
        algorithm.settings,
        algorithm.agent,
        "DQN",
        films=False,
        evaluates_untrained=True,
    )


def test_without_a_time_limit_all_evaluations_have_the_untrained_ones():
    made = settings_of(Endless)
    assert made["max_eval_steps"] == made["max_untrained_eval_steps"] == 1000
    made = settings_of(limited)
    assert made["max_eval_steps"] is None


class _Lengths(train.Callback):
    def __init__(self):
        self.seen = []

    def on_evaluation(self, result):
        self.seen += result.lengths.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("has_files", [False, True])
def test_a_run_without_a_time_limit_ends(tmp_path, has_files):
    lengths = _Lengths()
    algorithm = tfrl.DQN(
        Endless,
        fc_layer_params=(4,),
        num_eval_episodes=2,
        eval_interval=50,
        initial_collect_steps=64,
        logdir=tmp_path / "run" if has_files else None,
    )
    with pytest.warns(RuntimeWarning, match="limit of 1,000 steps of each"):
        algorithm.learn(200, callbacks=[lengths], progress=False)
    assert len(lengths.seen) >= 2
    assert set(lengths.seen) == {1000}
