"""The run of an algorithm in its folder, as commands and programs train it."""

import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl.experiments import single

SETTINGS = {
    "seed": 3,
    "jit_compile": False,
    "num_iterations": 6,
    "num_eval_episodes": 1,
    "eval_interval": 3,
    "initial_collect_steps": 20,
    "fc_layer_params": (4,),
}
QUIET = {"films": False, "reports": False, "shows_progress": False}


def make(folder, **changes):
    return tfrl.DQN("CartPole-v1", logdir=folder, **{**SETTINGS, **changes})


def train(folder, **changes):
    return single.train(make(None, **changes).recipe(), folder, **QUIET)


def weights(folder):
    reader = tf.train.load_checkpoint(str(folder / "checkpoints"))
    names = [x for x in reader.get_variable_to_shape_map() if x.startswith("agent/")]
    return {name: reader.get_tensor(name) for name in names}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("single") / "run"
    result = train(folder)
    assert result.finished
    return folder


def test_a_program_trains_the_same_weights(trained, tmp_path):
    make(tmp_path).learn(progress=False)
    expected = weights(trained)
    assert len(expected) > 3
    found = weights(tmp_path)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_finished_run_is_told_and_left(trained, capsys):
    before = (trained / "metrics.csv").read_text()
    assert train(trained) is None
    assert "This run is finished: 6 iterations done." in capsys.readouterr().err
    assert (trained / "metrics.csv").read_text() == before


def test_another_run_in_the_folder_is_refused(trained):
    with pytest.raises(tfrl.train.RunDirectoryError, match="gamma: was"):
        train(trained, gamma=0.5)


def test_a_length_in_steps_sets_the_schedules():
    made = make(None)
    assert made.steps_per_iteration == 4
    assert made.least_iterations(100) == 20
    assert made.length.num_iterations == 6
    made.train_for(100)
    assert made.schedule_iterations == 20
    length = made.length
    assert (length.num_iterations, length.num_environment_steps) == (None, 100)


def test_wrong_actions_are_told_before_the_environment_is_made():
    with pytest.raises(ValueError, match="whose actions are discrete, but SAC chooses"):
        tfrl.SAC("CartPole-v1").check_environment()
