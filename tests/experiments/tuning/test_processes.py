"""Trials in processes: what is reported of runs that end, fail or are told to stop."""

import math
import os
import signal

import pytest

import tfrl
from tfrl.experiments.tuning import plan, processes
from tfrl.system import interrupts, jobs

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
EVALUATIONS = {"iteration": "10", "evaluation_return": "5.0"}


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Returns what two runs report whose processes end with a status."""
    recipe = tfrl.DQN("CartPole-v1", num_iterations=20).recipe()
    planned = plan.Plan(recipe, None, num_evaluations=2, search="gamma")
    made = processes.Processes(planned, "CartPole-v1", tmp_path, number=2)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    rows = []
    monkeypatch.setattr(processes.run_files, "read_metrics", lambda _: rows)

    def start(statuses, reported, before_the_end=lambda: None, evaluated=()):
        def run_all(made, most, is_stopped, on_end, *, ends_early):
            for number, job in enumerate(made):
                rows[:] = evaluated
                job.output.with_name("metrics.csv").write_text("read by `read_metrics`")
                ends_early(number)
            before_the_end()
            for number, status in enumerate(statuses):
                on_end(number, status)
            return statuses

        def report(run, number, value):
            reported.append((run.name, number, value))
            return value is not None and math.isfinite(value)

        runs = iter(plan.TunedRun(f"run_{i}", i, {"gamma": 0.9}) for i in range(2))
        monkeypatch.setattr(jobs, "run_all", run_all)
        made.run(lambda: next(runs, None), report)

    return start


def test_a_run_that_failed_is_reported_after_its_evaluations(train):
    reported = []
    train([1, -9], reported, evaluated=[EVALUATIONS])
    assert sorted(reported) == [
        (name, *rest) for name in ("run_0", "run_1") for rest in ((1, 5.0), (2, None))
    ]


@pytest.mark.parametrize("number", SIGNALS)
def test_runs_that_a_signal_to_the_search_has_stopped_report_nothing(train, number):
    reported = []
    meaning = KeyboardInterrupt if number == signal.SIGINT else interrupts.Terminated
    statuses = [128 + signal.SIGTERM, 1]  # An interrupted import may end with 1.
    with pytest.raises(meaning):
        train(statuses, reported, lambda: os.kill(os.getpid(), number))
    assert reported == []


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("of", [lambda x: -x, lambda x: 128 + x], ids=["killed", "own"])
def test_a_run_that_was_told_to_stop_alone_has_not_failed(train, number, of):
    reported = []
    with pytest.raises(
        RuntimeError, match=r"1 of 2 runs .*run_1.output\.txt\. The sam"
    ):
        train([1, of(number)], reported)
    assert reported == [("run_0", 1, None)]


def test_a_run_that_was_pruned_and_so_told_to_stop_is_at_its_end(train):
    reported = []
    ends = [{**EVALUATIONS, "evaluation_return": "nan"}]
    train([143, 143], reported, evaluated=ends)
    assert len(reported) == 2
