import json
import os
import shutil
import subprocess
import sys
import warnings

import pytest

from tfrl.train.runs import run_directory

CONFIG = {"env": "CartPole-v1", "network": {"layers": (100,)}, "seed": 1}
LOCK = (
    "import sys; from tfrl.system import directory_lock\n"
    "directory_lock.lock(sys.argv[1]); print(flush=True); sys.stdin.read()"
)


def test_a_new_folder_is_made_and_holds_the_configuration(tmp_path):
    directory = run_directory.RunDirectory(tmp_path / "a" / "b", CONFIG)
    stored = json.loads((directory.path / "config.json").read_text())
    assert stored == {"env": "CartPole-v1", "network": {"layers": [100]}, "seed": 1}


def test_the_same_configuration_goes_on(tmp_path):
    run_directory.RunDirectory(tmp_path, CONFIG)
    run_directory.RunDirectory(tmp_path, dict(CONFIG))


def test_another_configuration_is_an_error_that_names_the_fields(tmp_path):
    run_directory.RunDirectory(tmp_path, CONFIG)
    changed = {"env": "CartPole-v1", "network": {"layers": (64,)}, "gamma": 0.9}
    with pytest.raises(run_directory.RunDirectoryError) as error:
        run_directory.RunDirectory(tmp_path, changed)
    text = str(error.value)
    assert "network.layers: was [100], is [64]" in text
    assert "gamma: was '(absent)', is 0.9" in text
    assert "seed: was 1, is '(absent)'" in text
    assert "env:" not in text
    assert "--overwrite" in text


def test_outputs_of_the_program_itself_are_removed_too(tmp_path):
    (tmp_path / "train").mkdir()
    with pytest.raises(run_directory.RunDirectoryError, match="holds train but no"):
        run_directory.RunDirectory(tmp_path, CONFIG, further_outputs=["train"])
    run_directory.RunDirectory(tmp_path, CONFIG, True, further_outputs=["train"])
    assert not (tmp_path / "train").exists()


def test_overwrite_removes_the_outputs_and_nothing_else(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    directory.metrics_csv.write_text("iteration\n1\n")
    directory.checkpoints.mkdir()
    (directory.checkpoints / "ckpt-1.index").touch()
    (tmp_path / "notes.txt").write_text("mine")
    run_directory.RunDirectory(tmp_path, {"env": "Acrobot-v1"}, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "notes.txt"]


def test_outputs_without_a_configuration_are_an_error(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(run_directory.RunDirectoryError, match="holds checkpoints but"):
        run_directory.RunDirectory(tmp_path, CONFIG)
    assert not (tmp_path / "config.json").exists()


def test_a_damaged_configuration_is_an_error(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(run_directory.RunDirectoryError, match="cannot be read"):
        run_directory.RunDirectory(tmp_path, CONFIG)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(run_directory.RunDirectoryError, match="cannot be written"):
        run_directory.RunDirectory(tmp_path / "file" / "run", CONFIG)


def test_rows_after_the_resumed_iteration_are_forgotten(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    directory.metrics_csv.write_text("iteration,loss\n5,0.1\n10,0.2\n15,0.3\n")
    directory.forget_after(10)
    assert directory.metrics_csv.read_text().split() == [
        "iteration,loss",
        "5,0.1",
        "10,0.2",
    ]


def test_a_field_that_may_change_is_not_compared(tmp_path):
    without = {"env": "CartPole-v1"}
    run_directory.RunDirectory(tmp_path, without)
    for device in ("", "GPU:0"):
        config = {**without, "device": device}
        run_directory.RunDirectory(tmp_path, config, may_change=["device"])
        with pytest.raises(run_directory.RunDirectoryError, match="device"):
            run_directory.RunDirectory(tmp_path, config)


def test_fields_that_an_earlier_configuration_lacks_have_the_values_they_stand_for(
    tmp_path,
):
    run_directory.RunDirectory(tmp_path, {"gamma": 0.9})
    absent = {"new": (1, 2), "other": 3, "gamma": 0.5}
    for _ in range(2):
        run_directory.RunDirectory(
            tmp_path, {"gamma": 0.9, "new": [1, 2]}, absent=absent
        )
    with pytest.raises(
        run_directory.RunDirectoryError, match=r"new: was \[1, 2\], is \[1\]"
    ):
        run_directory.RunDirectory(tmp_path, {"gamma": 0.9, "new": [1]}, absent=absent)
    with pytest.raises(
        run_directory.RunDirectoryError, match=r"gamma: was 0.9, is 0.5"
    ):
        run_directory.RunDirectory(tmp_path, {"gamma": 0.5}, absent=absent)
    with pytest.raises(run_directory.RunDirectoryError, match=r"new: was '\(absent\)'"):
        run_directory.RunDirectory(tmp_path, {"gamma": 0.9, "new": [1, 2]})


def test_the_arguments_make_the_same_directory_from_json(tmp_path):
    made = run_directory.RunDirectory(
        tmp_path, {"seed": 1, "device": "a"}, may_change=["device"], may_grow=()
    )
    arguments = json.loads(json.dumps(made.arguments))
    assert run_directory.RunDirectory(**arguments).config == made.config
    arguments["config"]["device"] = "b"
    run_directory.RunDirectory(**arguments)


def test_only_the_length_that_was_given_is_said_to_have_grown(tmp_path):
    short = {"num_iterations": 20, "num_environment_steps": 160}
    long = {"num_iterations": 30, "num_environment_steps": 240}
    run_directory.RunDirectory(tmp_path, short)
    longer = run_directory.RunDirectory(tmp_path, long)
    assert longer.grow() == {"num_environment_steps": (160, 240)}
    assert json.loads((tmp_path / "config.json").read_text()) == long


def test_a_number_of_iterations_may_grow_and_not_shrink(tmp_path):
    config = {"num_iterations": 20, "device": "GPU:0"}
    assert run_directory.RunDirectory(tmp_path, config).grow() == {}
    longer = run_directory.RunDirectory(
        tmp_path, {"num_iterations": 30, "device": ""}, may_change=["device"]
    )
    unchanged = json.loads((tmp_path / "config.json").read_text())
    assert unchanged["num_iterations"] == 20
    assert longer.grow() == {"num_iterations": (20, 30)}
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored == {"num_iterations": 30, "device": "GPU:0"}
    for number in (20, 40.0, "40", True):
        changed = {"num_iterations": number, "device": "GPU:0"}
        with pytest.raises(run_directory.RunDirectoryError) as error:
            run_directory.RunDirectory(tmp_path, changed)
        assert f"num_iterations: was 30, is {number!r}" in str(error.value)
    with pytest.raises(run_directory.RunDirectoryError, match="was 30, is 40"):
        run_directory.RunDirectory(
            tmp_path, {"num_iterations": 40, "device": "GPU:0"}, may_grow=()
        )


@pytest.fixture
def other_process(tmp_path):
    """A process that uses `tmp_path`; its number."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    yield process.pid
    process.communicate()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_another_process_uses_is_refused_untouched(
    tmp_path, other_process, overwrite
):
    (tmp_path / "metrics.csv").write_text("iteration\n1\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        run_directory.RunDirectoryError,
        match=rf"logdir '.*': locked by process {other_process} on host .*/lock\)",
    ):
        run_directory.RunDirectory(tmp_path, CONFIG, overwrite)
    assert sorted(tmp_path.iterdir()) == before


def test_the_lock_is_held_on_request_and_by_the_constructor_only_while_it_works(
    tmp_path,
):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    assert not (tmp_path / "lock").exists()
    directory.lock()
    run_directory.RunDirectory(tmp_path, CONFIG)
    assert (tmp_path / "lock").exists()
    directory.unlock()
    assert not (tmp_path / "lock").exists()
    directory.unlock()


def test_a_folder_may_be_copied_while_it_is_locked(tmp_path):
    directory = run_directory.RunDirectory(tmp_path / "run", CONFIG)
    directory.lock()
    shutil.copytree(directory.path, tmp_path / "copy")
    assert (
        "locked by process"
        in subprocess.run(
            [sys.executable, "-c", LOCK, str(directory.path)],
            input=b"",
            capture_output=True,
        ).stderr.decode()
    )
    directory.check_intact(5)
    directory.unlock()


@pytest.mark.parametrize(
    ("content", "loss"),
    [
        ('{"pid": 5, "host": "b"}', "it is locked by process 5 on host b"),
        (None, "the file of its lock was removed"),
    ],
)
def test_a_lock_that_is_lost_is_told_with_the_way_to_resume(tmp_path, content, loss):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    directory.lock()
    if content is None:
        (tmp_path / "lock").unlink()
    else:
        (tmp_path / "lock").write_text(content)
    with pytest.raises(
        run_directory.RunDirectoryError,
        match=f"{loss} .*stops at iteration 1,000. Run the same command again",
    ):
        directory.check_intact(1_000)
    directory.unlock()


def test_a_configuration_that_was_removed_is_written_again(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    directory.lock()
    before = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").unlink()
    with pytest.warns(RuntimeWarning, match=r"removed during .*again, and nothing is "):
        directory.check_intact(1_000)
    assert (tmp_path / "config.json").read_text() == before
    (tmp_path / "config.json").unlink()
    (tmp_path / "lock").unlink()
    with pytest.raises(run_directory.RunDirectoryError, match="All outputs up to iter"):
        directory.check_intact(2_000)
    assert not (tmp_path / "config.json").exists()
    directory.unlock()


def test_the_lock_is_not_for_a_run_whose_folder_has_another_configuration(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    run_directory.RunDirectory(tmp_path, {"env": "Acrobot-v1"}, overwrite=True)
    with pytest.raises(run_directory.RunDirectoryError, match="another configuration"):
        directory.lock()
    assert not (tmp_path / "lock").exists()


@pytest.mark.parametrize(
    ("text", "kind"), [("[1, 2]", "list"), ("null", "NoneType"), ('"x"', "str")]
)
def test_a_configuration_of_another_kind_is_an_error(tmp_path, text, kind):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(
        run_directory.RunDirectoryError,
        match=rf"config.json: got a {kind}, expected a JSON object .*--overwrite\.$",
    ):
        run_directory.RunDirectory(tmp_path, CONFIG)


def test_a_name_that_is_not_utf8_is_an_error(tmp_path):
    path = tmp_path / os.fsdecode(b"run_\xff")
    with pytest.raises(
        run_directory.RunDirectoryError, match=r"run_.*: has bytes that are not UTF-8"
    ):
        run_directory.RunDirectory(path, CONFIG)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_tensorflow_takes_for_a_pattern_is_an_error(tmp_path):
    with pytest.raises(run_directory.RunDirectoryError, match=r"run\*': has '\*'"):
        run_directory.RunDirectory(tmp_path / "run*", CONFIG)
    assert list(tmp_path.iterdir()) == []


def test_metrics_that_are_not_text_are_an_error_and_stay_as_they_are(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    directory.metrics_csv.write_bytes(b"\xff\n\xfe")
    with pytest.raises(
        ValueError, match=r"metrics.csv: cannot be read .*restore it, or"
    ):
        directory.forget_after(5)
    assert directory.metrics_csv.read_bytes() == b"\xff\n\xfe"


def test_metrics_that_a_resumed_run_has_lost_are_told(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, CONFIG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        directory.forget_after(-1)
    assert not directory.metrics_csv.exists()
    with pytest.warns(
        RuntimeWarning, match="METRICS LOST: .* up to iteration 10 are l"
    ):
        directory.forget_after(10)


def test_a_file_that_a_killed_run_has_not_completed_is_removed(tmp_path):
    directory = run_directory.RunDirectory(tmp_path, {})
    unfinished = tmp_path / ".new-abc"
    unfinished.mkdir()
    (unfinished / "metrics.csv").touch()
    directory.check_checkpoints()
    assert not unfinished.exists()
    assert (tmp_path / "config.json").exists()
