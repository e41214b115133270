"""Recurrent PPO from the command line, and runs that begin with another's weights.

`tests/train` has fast tests in `test_recurrent_resume.py` and
`runs/test_initial_weights.py`.
"""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow
SMALL = (
    "--num_envs=2",
    "--collect_steps_per_iteration=8",
    "--num_epochs=1",
    "--minibatch_size=8",
    "--fc_layer_params=(8,)",
    "--lstm_size=4",
    "--eval_interval=2",
    "--log_interval=2",
    "--checkpoint_interval=2",
    "--num_eval_episodes=2",
    "--jit_compile=False",
    "--nofilm",
    "--noevaluate_untrained",
)


def weights(logdir):
    path = tf.train.latest_checkpoint(str(logdir / "checkpoints"))
    reader = tf.train.load_checkpoint(path)
    found = {
        key: reader.get_tensor(key)
        for key, dtype in reader.get_variable_to_dtype_map().items()
        if key.startswith("agent/") and "optimizer" not in key and dtype.is_floating
    }
    assert found
    return found


@pytest.fixture(scope="module")
def earlier(forks, tmp_path_factory):
    """The folder of a recurrent run of PPO."""
    logdir = tmp_path_factory.mktemp("ppo") / "run"
    arguments = (*SMALL, f"--logdir={logdir}", "--num_iterations=2")
    code, _, errors = forks.run("train ppo", *arguments)
    assert code == 0, errors
    return logdir


def test_the_policy_of_a_recurrent_run_plays(earlier, run):
    logdir = earlier
    assert json.loads((logdir / "config.json").read_text())["lstm_size"] == 4
    # The recurrent kernels of the actor and the critic.
    assert [v.shape for v in weights(logdir).values()].count((4, 16)) == 2
    code, output, errors = run("play", f"{logdir}", "--num_episodes=2", "--video=")
    assert code == 0, errors
    assert "2 episodes of CartPole-v1: mean return" in output


def test_a_recurrent_run_resumes(earlier, run, tmp_path):
    logdir = shutil.copytree(earlier, tmp_path / "longer")
    arguments = (*SMALL, f"--logdir={logdir}", "--num_iterations=4")
    code, _, errors = run("train ppo", *arguments)
    assert code == 0, errors
    assert "Resumed at iteration 2" in errors
    assert [v.shape for v in weights(logdir).values()].count((4, 16)) == 2


@pytest.fixture(scope="module")
def begun(earlier, forks, tmp_path_factory):
    """A run that began with the earlier one's weights: how to go on, and its output."""
    folder = tmp_path_factory.mktemp("begun")
    initial_run = pathlib.Path(shutil.copytree(earlier, folder / "earlier"))
    logdir = folder / "run"
    # With a learning rate of 0, which the earlier run had not, nothing moves.
    arguments = (*SMALL, f"--logdir={logdir}", f"--initial_run={initial_run}")
    arguments = ("train ppo", *arguments, "--learning_rate=0.0")
    code, _, errors = forks.run(*arguments, "--num_iterations=2")
    assert code == 0, errors
    return initial_run, logdir, arguments, errors


def test_a_new_run_begins_with_the_weights(begun):
    initial_run, logdir, _, errors = begun
    assert f"Initial weights: {initial_run}/checkpoints/ckpt-2" in errors
    config = json.loads((logdir / "config.json").read_text())
    assert config["initial_run"] == str(initial_run)
    before, after = weights(initial_run), weights(logdir)
    assert before.keys() == after.keys()
    for key, value in after.items():
        np.testing.assert_array_equal(value, before[key], key)


# Of the tests that share the run this one is the last.
def test_a_new_run_resumes_without_the_earlier_one(begun, run):
    initial_run, _, arguments, _ = begun
    shutil.rmtree(initial_run)
    code, _, errors = run(*arguments, "--num_iterations=4")
    assert code == 0, errors
    assert "Resumed at iteration 2" in errors
    assert "Initial weights" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("train ppo", *SMALL, "--lstm_size=5"),
            "had other weights than this one",
        ),
        (
            ("train ppo", *SMALL, "--logdir={earlier}", "--overwrite"),
            "which is the folder of this run, too; give another logdir",
        ),
        (
            ("train impala", "--num_actors=1"),
            "with actors, expected none; train in one process",
        ),
    ],
    ids=["other networks", "the same folder", "actors"],
)
def test_an_initial_run_that_does_not_fit_is_refused(
    earlier, run, tmp_path, arguments, message
):
    logdir = tmp_path / "run"
    module, *flags = (word.format(earlier=earlier) for word in arguments)
    code, _, errors = run(
        module, f"--logdir={logdir}", *flags, f"--initial_run={earlier}"
    )
    assert code == 2
    assert message in errors
    assert "Traceback" not in errors
    assert not logdir.exists()
    assert (earlier / "checkpoints").exists()


def test_an_initial_run_without_checkpoints_is_refused(run, tmp_path):
    nowhere = tmp_path / "nowhere"
    code, _, errors = run(
        "train ppo", *SMALL, f"--logdir={tmp_path / 'run'}", f"--initial_run={nowhere}"
    )
    assert code == 2
    assert f"initial_run: got '{nowhere}', where there is no checkpoint" in errors
