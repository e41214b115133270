"""Learning curves of runs that were trained one by one, and results without weights."""

import numpy as np
import pytest

from tfrl.train.runs import columns, run_files
from tfrl.train.sweeps import sweep_result

HEADER = "iteration,environment_steps,loss,evaluation_return"


def write_metrics(path, *rows):
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


@pytest.fixture
def first(tmp_path):
    return write_metrics(
        tmp_path / "first.csv", "0,0,,9.5", "5,20,0.5,", "10,40,0.25,12", "12,48,1.5,30"
    )


def test_the_curves_are_the_evaluations_after_the_first_iteration(first, tmp_path):
    second = write_metrics(tmp_path / "second.csv", "10,39,2,7.5", "12,47,nan,8")
    curves = sweep_result.SweepCurves.read(
        [first, second], [4, 5], {"learning_rate": (1e-3, 1e-2)}
    )
    assert curves.seeds == (4, 5)
    np.testing.assert_array_equal(curves.iterations, [10, 12])
    np.testing.assert_array_equal(curves.environment_steps, [[40, 48], [39, 47]])
    np.testing.assert_array_equal(curves.returns, [[12, 30], [7.5, 8]])
    np.testing.assert_array_equal(curves.losses, [[0.25, 1.5], [2, np.nan]])

    curves.write_csv(tmp_path / "curves.csv")
    assert (tmp_path / "curves.csv").read_text().splitlines() == [
        "learning_rate,seed,iteration,environment_steps,return,loss",
        "0.001,4,10,40,12.0,0.25",
        "0.001,4,12,48,30.0,1.5",
        "0.01,5,10,39,7.5,2.0",
        "0.01,5,12,47,8.0,nan",
    ]


def test_runs_with_evaluations_at_other_iterations_are_refused(first, tmp_path):
    short = write_metrics(tmp_path / "short.csv", "10,40,0.25,12")
    with pytest.raises(
        ValueError,
        match=r"short\.csv: has evaluations at .*\[10\], expected \[10, 12\]",
    ):
        sweep_result.SweepCurves.read([first, short], [4, 5], {})


@pytest.mark.parametrize(
    "content",
    ["", "iteration,loss\n1,2\n", f"{HEADER}\n5,20,x,1\n", f"{HEADER}\n5,20,,1\n"],
)
def test_a_file_that_is_not_the_metrics_of_a_run_is_named(tmp_path, content):
    path = tmp_path / "metrics.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=rf"{path}: .*expected the metrics of a run"):
        sweep_result.SweepCurves.read([path], [4], {})


def test_the_curve_of_a_run_is_the_table_of_a_run_by_itself(tmp_path):
    iterations, steps = np.array([10, 20]), np.array([[40, 80], [41, 82]])
    returns, losses = np.array([[1.5, 2], [3, 4]]), np.array([[0.5, 0.25], [1, np.nan]])
    result = sweep_result.SweepCurves((1, 2), {}, iterations, steps, returns, losses)
    path = tmp_path / "metrics.csv"
    path.write_text("old\n")
    result.write_metrics(1, path, pace=1.0)
    first, last = run_files.read_metrics(path)
    assert tuple(first) == columns.TABLE
    assert {name: cell for name, cell in last.items() if cell} == {
        "iteration": "20",
        "environment_steps": "82",
        "training_seconds": "20.0",
        "loss": "nan",
        "evaluation_return": "4.0",
    }
    read = sweep_result.SweepCurves.read([path], [2], {})
    np.testing.assert_array_equal(read.returns, returns[1:])


def test_a_run_that_diverged_has_no_policy_to_save(tmp_path):
    numbers = np.zeros([2, 1])
    losses = np.array([[0.5], [np.nan]])
    result = sweep_result.SweepResult(
        (1, 2), {}, np.array([10]), numbers, numbers, losses, None, [], [], np.ones(1)
    )
    with pytest.raises(ValueError, match=r"run: got 1, which diverged.*learning rate"):
        result.save_policy(1, tmp_path / "policy")


@pytest.mark.parametrize(
    ("iterations", "seconds", "pace"),
    [
        # A compilation of 60 s, then 2 s an iteration, also after a kill.
        ([10, 20, 30, 35], [80.0, 20.0, 20.0, 70.0], 2.0),
        ([10], [80.0], 8.0),
    ],
)
def test_the_pace_leaves_compilations_out_and_knows_earlier_processes(
    iterations, seconds, pace
):
    numbers = np.zeros([1, len(iterations)])
    result = sweep_result.SweepResult(
        *((1,), {}, np.array(iterations), numbers, numbers, numbers),
        *(None, [], [], np.array(seconds)),
    )
    assert result.pace() == pace


def test_a_seed_whose_return_is_nan_is_the_lowest_of_the_curve(first, tmp_path):
    lost = write_metrics(tmp_path / "lost.csv", "10,39,2,7.5", "12,47,nan,nan")
    curves = sweep_result.SweepCurves.read([first, lost], [4, 5], {})
    curves.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
