"""Comparison of two checkouts: intervals, verdicts, and their display."""

import csv
import math

import pytest

from benchmarks import comparison, report


# From tables of the sign test's interval for a median, at 95 %.
@pytest.mark.parametrize(
    ("count", "place"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6)]
)
def test_an_interval_ends_at_the_values_of_the_sign_tests_tables(count, place):
    values = [float(i) for i in range(count, 0, -1)]
    assert comparison.median_interval(values) == (place, count + 1 - place)


@pytest.mark.parametrize("count", range(6, 41))
def test_an_interval_holds_the_median_in_95_percent_and_no_narrower_one_does(count):
    low, _ = comparison.median_interval([float(i) for i in range(count)])
    outside = [
        2 * sum(math.comb(count, i) for i in range(k)) / 2**count
        for k in (int(low) + 1, int(low) + 2)
    ]
    assert outside[0] <= 0.05 < outside[1]


def test_too_few_rounds_have_no_interval():
    assert comparison.median_interval([1.0] * 5) is None
    assert comparison.median_interval([]) is None


def _compare(ratios, **options):
    base = [100.0, 50.0, 10.0, 80.0, 20.0, 30.0]
    ours = [ratio * value for ratio, value in zip(ratios, base, strict=True)]
    return comparison.compare(
        report.Series("tfrl", ours), report.Series("other: tfrl", base), **options
    )


def test_ratios_are_of_the_same_round():
    compared = _compare([1.2, 1.1, 1.3, 1.25, 1.15, 1.05])
    assert compared.ratio == pytest.approx(1.175, rel=1e-9)
    assert compared.interval == pytest.approx((1.05, 1.3), rel=1e-9)


@pytest.mark.parametrize(
    ("least", "most", "verdict"),
    [
        (0.90, 0.969, "slower"),
        (0.90, 0.971, ""),
        (0.90, 1.10, ""),
        (1.029, 1.10, ""),
        (1.031, 1.10, "faster"),
    ],
)
def test_a_verdict_takes_the_whole_interval(least, most, verdict):
    assert _compare([least, *[(least + most) / 2] * 4, most]).verdict == verdict


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(0.9, "faster"), (1.0, ""), (1.1, "slower")]
)
def test_less_time_is_faster(ratio, verdict):
    assert _compare([ratio] * 6, less_is_better=True).verdict == verdict


def test_who_failed_on_the_way_is_compared_by_the_rounds_that_both_did():
    this = report.Series("tfrl", [2.0, 4.0])
    other = report.Series("other: tfrl", [1.0, 1.0, 1.0])
    assert comparison.compare(this, other).ratio == 3.0


RESULT = report.Result(
    "dqn",
    "the loop",
    "iterations/s",
    [
        report.Series("tfrl", [90.0] * 6),
        report.Series("other: tfrl", [100.0] * 6),
        report.Series("tfrl, new", [5.0] * 6),
        report.Series("other: tfrl, gone", [7.0] * 6),
    ],
    notes=["other: tfrl, new: not measured: KeyError"],
)
FEW = report.Result(
    "buffer",
    "memory",
    "bytes",
    [report.Series("tfrl", [2.0]), report.Series("other: tfrl", [1.0])],
)


def test_a_table_has_a_line_for_both_checkouts_contenders():
    title, header, ours, new, gone, note, _ = comparison.table(RESULT).split("\n")
    assert title == "dqn: the loop; iterations/s"
    assert " ".join(header.split()) == "this other this / other 95 % interval"
    assert " ".join(ours.split()) == "tfrl 90 100 0.900 0.900 .. 0.900 slower"
    assert new.split() == ["tfrl,", "new", "5"]
    assert gone.split() == ["tfrl,", "gone", "7"]
    assert note == "  other: tfrl, new: not measured: KeyError"


def test_a_table_of_one_value_each_has_the_ratio_alone():
    assert comparison.table(FEW).split("\n")[2].split() == ["tfrl", "2", "1", "2.000"]


def test_the_summary_names_who_changed():
    slower, name, faster, few = comparison.summary([RESULT, FEW])
    assert slower == "slower than the other checkout: 1 of 2"
    assert name.split("; ")[:2] == ["  dqn: the loop", "tfrl"]
    assert "0.900" in name
    assert faster == "faster than the other checkout: 0 of 2"
    assert few == "too few rounds for an interval: 1 of 2"


def test_csv_holds_every_comparison(tmp_path):
    path = tmp_path / "against.csv"
    comparison.write_csv([RESULT, FEW], path)
    with path.open() as file:
        first, second = csv.DictReader(file)
    assert (first["this"], first["other"], first["ratio"]) == ("90.0", "100.0", "0.9")
    assert (first["low"], first["high"], first["rounds"]) == ("0.9", "0.9", "6")
    assert first["verdict"] == "slower"
    assert (second["low"], second["rounds"], second["verdict"]) == ("", "1", "")
