import gymnasium
import numpy as np
import pytest

import tfrl
from tfrl import environments, train


class Corridor(gymnasium.Env):
    """Pays 1 at its end, after `length` steps whatever the actions."""

    observation_space = gymnasium.spaces.Box(0, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.length, self.steps = 2, 0
        self.lengths = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.lengths.append(self.length)
        return np.float32([0]), {}

    def step(self, action):
        self.steps += 1
        ends = self.steps >= self.length
        return np.float32([min(self.steps, 10)]), float(ends), ends, False, {}


class Rows(train.Callback):
    def __init__(self):
        self.levels = []

    def on_log(self, row):
        self.levels.append(row["level"])


def make(**settings):
    return tfrl.A2C(
        Corridor,
        num_envs=1,
        collect_steps_per_iteration=5,
        num_iterations=30,
        log_interval=2,
        eval_interval=100,
        checkpoint_interval=10,
        jit_compile=False,
        seed=0,
        **settings,
    )


def inside(algorithm):
    return algorithm.environment.pyenv.envs[0].gym.unwrapped


def curriculum(algorithm, **arguments):
    values = {"threshold": 0.9, "min_episodes": 6, **arguments}
    return train.Curriculum(algorithm.environment, "length", [2, 3, 4], **values)


def test_levels_rise_with_the_return_and_enough_episodes():
    algorithm, rows = make(), Rows()
    levels = curriculum(algorithm)
    algorithm.learn(callbacks=[levels, rows], progress=False)
    assert rows.levels == sorted(rows.levels)
    assert {0.0, 1.0, 2.0} == set(rows.levels)
    assert levels.level == 2
    assert inside(algorithm).length == 4
    lengths = inside(algorithm).lengths
    changes = [lengths.index(length) for length in (2, 3, 4)]
    assert changes == sorted(changes)
    assert min(np.diff(changes)) >= 6


def test_a_threshold_that_is_not_reached_keeps_the_level():
    algorithm = make()
    levels = curriculum(algorithm, threshold=1.5)
    algorithm.learn(callbacks=[levels], progress=False)
    assert levels.level == 0
    assert set(inside(algorithm).lengths) == {2}


@pytest.mark.slow
def test_a_run_that_resumes_has_the_level_of_its_checkpoint(tmp_path):
    first = make(logdir=tmp_path)
    levels = curriculum(first)
    first.learn(100, callbacks=[levels], progress=False)
    assert levels.level == 2
    second = make(logdir=tmp_path)
    levels = curriculum(second, threshold=1.5)
    second.learn(100, callbacks=[levels], progress=False)
    assert inside(second).length == 2  # It has nothing to do yet.
    second.learn(10, callbacks=[levels], progress=False)
    assert levels.level == 2
    assert inside(second).length == 4


def test_a_subclass_chooses_and_other_environments_follow():
    class Back(train.Curriculum):
        def choose(self, level, row):
            return 2 if level == 0 else 1

    algorithm = make()
    other = environments.TFPyEnvironment(environments.suite_gym.wrap_env(Corridor()))
    levels = Back(
        algorithm.environment, "length", [2, 3, 4], threshold=0.0, others=[other]
    )
    algorithm.learn(10, callbacks=[levels], progress=False)
    assert levels.level in (1, 2)
    assert other.pyenv.envs[0].gym.unwrapped.length == inside(algorithm).length


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"levels": []}, "levels: got none"), ({"min_episodes": 0}, "min_episodes")],
)
def test_wrong_arguments_are_refused(arguments, error):
    values = {"levels": [1], "threshold": 0.0, **arguments}
    with pytest.raises(ValueError, match=error):
        train.Curriculum(None, "length", **values)
