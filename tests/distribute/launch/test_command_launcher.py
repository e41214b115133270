"""What a launcher of commands prints and refuses."""

import pytest

from tests.distribute import small_impala
from tfrl import distribute, train
from tfrl.distribute.process_roles import REPLAY, Task

EXPERIMENT = "tests.distribute.small_impala:make_experiment"


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("TFRL_REPLAY_TOKEN", "a secret")


def test_a_role_has_a_command():
    launcher = distribute.CommandLauncher(EXPERIMENT)
    assert launcher.command(Task(REPLAY), "10.0.0.1:8000") == (
        "python -m tfrl.distribute.worker --role=replay --index=0 "
        f"--experiment={EXPERIMENT} --coordinator=10.0.0.1:8000"
    )


def test_an_experiment_that_cannot_be_imported_is_refused_before_the_run():
    with pytest.raises(ImportError):
        distribute.CommandLauncher("no_such_module:function")
    with pytest.raises(ValueError, match="patience: expected"):
        distribute.CommandLauncher(EXPERIMENT, patience=0)


def test_a_run_in_lockstep_is_refused_because_nobody_starts_all_processes_again(
    tmp_path,
):
    with pytest.raises(ValueError, match="schedule: got 'lockstep' with a Command"):
        distribute.run_distributed(
            small_impala.IMPALA,
            train.RunDirectory(tmp_path, {}),
            num_actors=1,
            num_iterations=4,
            schedule="lockstep",
            launcher=distribute.CommandLauncher(EXPERIMENT),
        )


def test_a_launcher_of_commands_needs_a_token(tmp_path, monkeypatch):
    monkeypatch.delenv("TFRL_REPLAY_TOKEN")
    with pytest.raises(ValueError, match="TFRL_REPLAY_TOKEN: got none, expected the"):
        distribute.run_distributed(
            small_impala.IMPALA,
            train.RunDirectory(tmp_path, {}),
            num_actors=1,
            num_iterations=4,
            launcher=distribute.CommandLauncher(EXPERIMENT),
        )
