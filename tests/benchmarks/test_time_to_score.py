"""The time until a policy is good: its rows, medians, table and page."""

import dataclasses
import json
import math

import pytest

from benchmarks import score_problems, time_to_score

PROBLEM = next(x for x in time_to_score.PROBLEMS if x.name == "dqn_cartpole")


def found(seconds, reached=True):
    return {
        "reached": reached,
        "seconds": seconds,
        "evaluation_seconds": 1.0,
        "steps": 4000,
        "return": 480.0,
        "versions": "python 3.11",
        "curve": [(0.9 * seconds, 22.04), (seconds, 480.0)],
    }


def row(system, seed, seconds, cache="", reached=True, problem=PROBLEM):
    run = time_to_score.Run(problem, system, seed)
    return time_to_score._row(run, cache, found(seconds, reached))


@pytest.fixture
def trained(monkeypatch):
    """Replaces the training; returns the list of the runs that it did."""
    done = []

    def train(run, variables):
        done.append((run.system, run.seed, variables["TFRL_CACHE_DIR"]))
        return found(10.0)

    monkeypatch.setattr(time_to_score, "_train", train)
    return done


def test_a_run_that_has_its_rows_is_not_done_again(tmp_path, trained):
    path = tmp_path / "rows.csv"
    wanted = [*time_to_score.runs([PROBLEM], ["tfrl", "torch"])]
    assert time_to_score.train_missing(wanted[:2], path) == 0
    assert time_to_score.train_missing(wanted, path) == 0
    systems = [system for system, _, _ in trained]
    assert systems == 3 * ["tfrl", "tfrl", "torch"]
    # The second process with a seed finds the cache of the first one.
    caches = [cache for system, _, cache in trained if system == "tfrl"]
    assert caches[::2] == caches[1::2]
    assert len({*caches}) == 3
    names = [(r["system"], r["cache"], r["seed"]) for r in time_to_score.read(path)]
    assert names[:3] == [
        ("tfrl", "cold", "0"),
        ("tfrl", "cold", "1"),
        ("tfrl", "cold", "2"),
    ]
    assert len(names) == 9


def test_a_row_has_the_curve_of_its_evaluations():
    assert row("torch", 0, 10.0)["curve"] == "9.0:22.0 10.0:480.0"


def test_a_run_with_other_settings_replaces_its_row(tmp_path, trained):
    path = tmp_path / "rows.csv"
    other = dataclasses.replace(PROBLEM, score=450.0)
    for problem in (PROBLEM, other, other):
        time_to_score.train_missing([time_to_score.Run(problem, "sbx", 0)], path)
    assert len(trained) == 2
    (left,) = time_to_score.read(path)
    assert time_to_score.key_of(left) == time_to_score.Run(other, "sbx", 0).key("")


def test_a_failed_run_is_told_and_the_others_are_done(tmp_path, monkeypatch, capsys):
    def train(run, variables):
        if run.seed == 0:
            raise time_to_score.processes.WorkerError("out of memory")
        return found(10.0)

    monkeypatch.setattr(time_to_score, "_train", train)
    path = tmp_path / "rows.csv"
    assert (
        time_to_score.train_missing(time_to_score.runs([PROBLEM], ["torch"]), path) == 1
    )
    assert [each["seed"] for each in time_to_score.read(path)] == ["1", "2"]
    assert "failed: out of memory" in capsys.readouterr().err


def test_a_seed_without_the_return_takes_forever():
    rows = [row("torch", seed, x) for seed, x in enumerate((30.0, 10.0))]
    late = row("torch", 2, 5.0, reached=False)
    assert time_to_score.median(rows) == 20.0
    assert time_to_score.median([*rows, late]) == 30.0
    assert time_to_score.median([rows[0], late]) == math.inf


def test_the_table_compares_the_fastest_peer_with_a_warm_start():
    rows = [
        *(row("tfrl", seed, 8.0 + seed, "cold") for seed in range(3)),
        *(row("tfrl", seed, 4.0 + seed, "warm") for seed in range(3)),
        *(row("torch", seed, 20.0) for seed in range(2)),
        row("torch", 2, 50.0, reached=False),
        *(row("sbx", seed, 60.0) for seed in range(2)),
        row("tf_agents", 0, 80.0),
    ]
    line = next(x for x in time_to_score.table(rows) if "DQN" in x)
    assert line == (
        "| DQN, CartPole-v1 | 475 | 9.0 (4,000) | 5.0 (4,000) | "
        "20.0 (4,000; 2 of 3 seeds) | 60.0 (4,000; 2 seeds) | "
        "80.0 (4,000; 1 seed) | 4.0 |"
    )
    rows = [{**each, "reached": "no"} for each in rows]
    line = next(x for x in time_to_score.table(rows) if "DQN" in x)
    assert "| 0 of 3 in 4,000 steps |" in line
    assert line.endswith("|  |")


def test_an_algorithm_that_a_library_lacks_is_named_none():
    line = next(x for x in time_to_score.table([]) if "A2C" in x)
    assert (
        line
        == "| A2C, CartPole-v1 | 475 | not run | not run | not run | none | none |  |"
    )


def test_the_table_takes_its_place_on_the_page():
    page = "Before.\n<!-- time to score: begin -->\nOld.\n<!-- time to score: end -->\n"
    filled = time_to_score.fill(page, ["New."])
    assert filled.startswith("Before.\n<!-- time to score: begin -->\n\nNew.\n\n<!--")
    assert time_to_score.fill(filled, ["New."]) == filled


def test_the_page_has_the_table_of_the_rows():
    page = time_to_score.PAGE.read_text(encoding="utf-8")
    assert time_to_score.fill(page, time_to_score.table(time_to_score.read())) == page


def test_unknown_names_are_errors(capsys):
    for word in ("--only=dqn", "--systems=jax"):
        with pytest.raises(SystemExit):
            time_to_score.main([word])
    assert "--only: got 'dqn', expected ppo_cartpole" in capsys.readouterr().err


@pytest.mark.parametrize("problem", score_problems.PROBLEMS, ids=lambda x: x.name)
def test_every_task_is_json_and_evaluates_alike_for_all(problem):
    shared = {
        tuple(json.loads(json.dumps(problem.task(system)))[name] for name in names)
        for names in [("environment", "algorithm", "score", "every", "steps")]
        for system in problem.settings
    }
    assert len(shared) == 1
    assert {"tfrl", "torch"} <= problem.settings.keys() <= time_to_score.SYSTEMS.keys()
