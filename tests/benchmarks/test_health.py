"""The runs that check the rules of health."""

import collections
import pathlib

from benchmarks import health as runs
from tfrl.reports import health

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "health.md"
RULES = [*(rule.name for rule in health.RULES), "seeds"]


def test_two_runs_are_broken_for_each_rule_and_twelve_rows_are_healthy():
    counts = collections.Counter(case.rule for case in runs.BROKEN.values())
    assert counts == dict.fromkeys(RULES, 2)
    assert len(runs.HEALTHY) == 12


def test_the_page_has_the_rules_and_the_runs():
    text = PAGE.read_text()
    table = text[text.index("## The rules") : text.index("Most figures are")]
    found = [line.split("`")[1] for line in table.splitlines() if line[:3] == "| `"]
    assert found == RULES
    for case in [*runs.BROKEN.values(), *runs.HEALTHY.values()]:
        assert f"| {case.text}" in text
    assert f"hits in {len(runs.BROKEN)} broken runs" in text


def test_a_run_without_rows_is_told_in_the_table(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "FOLDER", tmp_path)
    assert runs.table().count("| not trained |") == len(runs.BROKEN)
    assert "0 hits in 32 broken runs, 0 false alarms in 0 healthy ones" in runs.table()
