import json
import subprocess
import sys

import pytest

from tfrl.train.runs import finished_runs, run_directory

FILES = (
    "metrics.csv",
    "learning_curve.png",
    "checkpoints/ckpt-20.index",
    "policy/variables/variables.index",
    "final_policy/saved_model.pb",
)


@pytest.fixture
def finished(tmp_path):
    """The directory of a run that has finished at iteration 20."""
    directory = run_directory.RunDirectory(tmp_path, {"num_iterations": 20})
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"the content of {name}")
    directory.mark_finished(20)
    return directory


def test_a_finished_run_is_recognised_until_an_output_is_changed(finished):
    assert finished.finished_iteration() == 20
    for name in FILES:
        path = finished.path / name
        content = path.read_text()
        path.write_text(content.replace("content", "CONTENT"))  # Of the same size.
        assert finished.finished_iteration() is None
        path.unlink()
        assert finished.finished_iteration() is None
        path.write_text(content)
        assert finished.finished_iteration() == 20


@pytest.mark.parametrize(
    "text", [None, "{", "[]", '{"iteration": 20}', "[" * 100_000, "null", "3"]
)
def test_a_run_without_a_whole_mark_is_not_known_to_be_finished(finished, text):
    mark = finished.path / finished_runs.NAME
    mark.unlink() if text is None else mark.write_text(text)
    assert finished.finished_iteration() is None


@pytest.mark.parametrize("iteration", ["twenty", None, [20], 1e999, True])
def test_a_mark_whose_iteration_is_no_number_is_not_whole(finished, iteration):
    mark = finished.path / finished_runs.NAME
    record = {**json.loads(mark.read_text()), "iteration": iteration}
    mark.write_text(json.dumps(record))
    assert finished.finished_iteration() is None


def test_a_run_that_becomes_longer_is_not_finished(finished):
    path = finished.path
    longer = run_directory.RunDirectory(path, {"num_iterations": 40})
    assert longer.finished_iteration() is None
    longer.grow()
    # Neither if the process ends then.
    again = run_directory.RunDirectory(path, {"num_iterations": 40})
    assert again.finished_iteration() is None


def test_tensorflow_is_not_needed_to_recognise_a_finished_run(finished):
    script = (
        "import sys; from tfrl import train\n"
        "run = train.RunDirectory(sys.argv[1], {'num_iterations': 20})\n"
        "print(run.finished_iteration(), {'keras', 'tensorflow'} & {*sys.modules})"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, finished.path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == "20 set()\n"
