"""The curves of a sweep, for results without weights."""

import numpy as np
import pytest

from tfrl.train.runs import columns, run_files
from tfrl.train.sweeps import sweep_result


@pytest.fixture
def result():
    """Returns a function that makes results without weights."""

    def make(iterations, steps, returns, losses, seconds=None, **hyperparameters):
        seconds = np.ones(len(iterations)) if seconds is None else np.array(seconds)
        return sweep_result.SweepResult(
            tuple(range(4, 4 + len(steps))),
            hyperparameters,
            np.array(iterations),
            *map(np.array, (steps, returns, losses)),
            seconds,
            *(None, [], []),
        )

    return make


def test_a_csv_has_a_row_for_each_run_and_evaluation(result, tmp_path):
    curves = result(
        [10, 12],
        [[40, 48], [39, 47]],
        [[12.0, 30.0], [7.5, 8.0]],
        [[0.25, 1.5], [2.0, np.nan]],
        learning_rate=(1e-3, 1e-2),
    )
    curves.write_csv(tmp_path / "curves.csv")
    assert (tmp_path / "curves.csv").read_text().splitlines() == [
        "learning_rate,seed,iteration,environment_steps,return,loss",
        "0.001,4,10,40,12.0,0.25",
        "0.001,4,12,48,30.0,1.5",
        "0.01,5,10,39,7.5,2.0",
        "0.01,5,12,47,8.0,nan",
    ]


def test_the_curve_of_a_run_is_the_table_of_a_run_by_itself(result, tmp_path):
    steps, returns = [[40, 80], [41, 82]], [[1.5, 2], [3, 4]]
    curves = result([10, 20], steps, returns, [[0.5, 0.25], [1, np.nan]])
    path = tmp_path / "metrics.csv"
    path.write_text("old\n")
    curves.write_metrics(1, path, pace=1.0)
    first, last = run_files.read_metrics(path)
    assert tuple(first) == columns.TABLE
    assert {name: cell for name, cell in last.items() if cell} == {
        "iteration": "20",
        "environment_steps": "82",
        "training_seconds": "20.0",
        "loss": "nan",
        "evaluation_return": "4.0",
    }


def test_a_run_that_diverged_has_no_policy_to_save(result, tmp_path):
    diverged = result([10], [[0], [0]], [[0], [0]], [[0.5], [np.nan]])
    with pytest.raises(ValueError, match=r"run: got 1, which diverged.*learning rate"):
        diverged.save_policy(1, tmp_path / "policy")


@pytest.mark.parametrize(
    ("iterations", "seconds", "pace"),
    [
        # A compilation of 60 s, then 2 s an iteration, also after a kill.
        ([10, 20, 30, 35], [80.0, 20.0, 20.0, 70.0], 2.0),
        ([10], [80.0], 8.0),
    ],
)
def test_the_pace_leaves_compilations_out_and_knows_earlier_processes(
    result, iterations, seconds, pace
):
    numbers = np.zeros([1, len(iterations)])
    assert result(iterations, numbers, numbers, numbers, seconds).pace() == pace


def test_a_seed_whose_return_is_nan_is_the_lowest_of_the_curve(result, tmp_path):
    curves = result(
        [10, 12],
        [[40, 48], [39, 47]],
        [[12, 30], [7.5, np.nan]],
        [[0.25, 1.5], [2, np.nan]],
    )
    curves.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
