"""The runs that check the rules of health."""

import collections
import pathlib

from benchmarks import health as runs
from benchmarks import health_cases, health_held_out, health_named
from tfrl.reports import health

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "health.md"
RULES = [*(rule.name for rule in health.RULES), "seeds"]


def test_two_runs_are_broken_for_each_rule():
    seen = [*health_cases.BROKEN.values(), *health_named.BROKEN.values()]
    counts = collections.Counter(case.rule for case in seen)
    # That nothing was learned is a finding of most of them.
    assert counts.keys() == {*RULES} - {"learning"}
    assert min(counts.values()) >= 2
    assert len(health_cases.HEALTHY) == 12


def test_24_broken_and_12_healthy_runs_were_held_out():
    held_out = health_held_out.BROKEN, health_held_out.HEALTHY
    assert [len(cases) for cases in held_out] == [24, 12]
    assert {case.rule for case in held_out[0].values()} <= {*RULES}


def test_the_page_has_the_rules_and_the_runs():
    text = PAGE.read_text()
    table = text[text.index("| Rule | What") : text.index("Most figures are")]
    found = [line.split("`")[1] for line in table.splitlines() if line[:3] == "| `"]
    assert found == RULES
    for case in [*runs.BROKEN.values(), *runs.HEALTHY.values()]:
        assert f"| {case.text}" in text


def test_a_run_without_rows_is_told_in_the_table(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "FOLDER", tmp_path)
    table = runs.table()
    assert table.count("| not trained |") == len(runs.BROKEN)
    assert table.count("0 hits in 0 broken runs, 0 false alarms in 0 healthy") == 3


def test_one_false_alarm_is_told_in_the_singular(monkeypatch):
    monkeypatch.setattr(runs, "_rules_of_broken", lambda name, case: [case.rule])
    monkeypatch.setattr(runs, "_rules_of_healthy", lambda name: {"seed 0": ["units"]})
    case = health_cases.Case("units", "DQN", "DQN", "CartPole-v1")
    table = runs._table_of({"broken": case}, {"healthy": case})
    assert "\n\n1 hit in 1 broken run, 1 false alarm in 1 healthy one." in table
