import csv

import pytest

from benchmarks import report

OURS = report.Series("tfrl", [30.0, 20.0, 1234.0])
PEER = report.Series("Peer", [10.0, 10.0, 2.0])
RESULT = report.Result(
    "dqn", "the loop", "iterations/s", [OURS, PEER], ("Peer", "gone"), ["a note"]
)


def test_a_range_is_median_least_and_most():
    assert OURS.range() == (30.0, 20.0, 1234.0)


def test_ratios_compare_values_of_the_same_round():
    # 3, 2 and 617: not the ratio of the medians, nor of the extremes.
    assert RESULT.ratio(OURS, "Peer") == (3.0, 2.0, 617.0)
    assert RESULT.ratio(PEER, "Peer") == (1.0, 1.0, 1.0)


def test_there_is_no_ratio_to_who_was_not_measured():
    assert RESULT.ratio(OURS, "gone") is None


def test_ratios_are_of_the_rounds_that_both_did():
    short = report.Series("short", [5.0])
    result = report.Result("dqn", "", "", [OURS, short], ("short",))
    assert result.ratio(OURS, "short") == (6.0, 6.0, 6.0)


def test_a_table_has_a_line_for_each_contender_and_note():
    title, header, ours, peer, note, _ = report.table(RESULT).split("\n")
    assert title == "dqn: the loop; iterations/s"
    assert header.split() == ["median", "least", "..", "most", "x", "Peer"]
    assert ours.split() == ["tfrl", "30", "20", "..", "1,234", "3.00"]
    assert peer.split() == ["Peer", "10", "2", "..", "10", "1.00"]
    assert note == "  a note"


def test_a_table_of_nothing_shows_the_notes():
    empty = report.Result("dqn", "the loop", "iterations/s", [], notes=["all failed"])
    assert "all failed" in report.table(empty)


def test_csv_holds_every_value_and_every_ratio(tmp_path):
    report.write_csv([RESULT], tmp_path)
    with (tmp_path / "measurements.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["contender"], row["round"], row["value"]) for row in rows] == [
        (series.label, str(i), str(value))
        for series in (OURS, PEER)
        for i, value in enumerate(series.values)
    ]
    with (tmp_path / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["contender"], row["reference"], row["ratio"]) for row in rows] == [
        ("tfrl", "Peer", "3.0"),
        ("tfrl", "gone", ""),
        ("Peer", "Peer", "1.0"),
        ("Peer", "gone", ""),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(1234567.8, "1,234,568"), (99.96, "100"), (0.0123456, "0.0123")]
)
def test_numbers_have_three_or_more_digits(value, text):
    assert report.number(value) == text
