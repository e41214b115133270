"""Evaluations end where nothing else ends the episodes."""

import pytest

import tfrl
from tests.environments.endless import Endless, limited
from tfrl import train
from tfrl.algorithms import run_settings, worlds
from tfrl.environments import extras


def is_limited(name):
    world = worlds.World(name, tfrl.DQN(), worlds.ActionFit("discrete", "DQN"))
    return [world.has_time_limit(world.make_evaluation(n, 0)) for n in (1, 2)]


def test_names_say_whether_there_is_a_limit():
    assert all(is_limited("MountainCar-v0"))
    assert all(is_limited("CartPoleNoVel-v1"))
    assert all(is_limited("BitFlipping5-v0"))
    assert not any(is_limited("CliffWalking-v1"))


@pytest.mark.skipif(not extras.is_installed("minigrid"), reason="needs tfrl[minigrid]")
def test_grids_end_their_episodes_themselves():
    assert all(is_limited("MiniGrid-Empty-5x5-v0"))


def settings_of(environment):
    algorithm = tfrl.DQN(environment, fc_layer_params=(4,), num_eval_episodes=2)
    return run_settings.make(algorithm, algorithm.agent, films=False)


def test_without_a_time_limit_all_evaluations_have_the_untrained_ones():
    assert settings_of(Endless)["limits"] == train.EvaluationLimits(1000, 1000)
    assert settings_of(limited)["limits"] == train.EvaluationLimits(None, 1000)


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
