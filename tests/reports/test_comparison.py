"""Comparisons of groups of runs: the numbers, the sentence and the files."""

import csv
import errno
import os

import numpy as np
import pytest

from tfrl.eval import rank_tests, statistics
from tfrl.reports import comparison

STEPS = np.array([0, 1000, 2000])


def curve(score, name="run", steps=STEPS, seconds_per_step=0.01):
    scores = np.linspace(0, score, len(steps))
    return comparison.Curve(name, steps, steps * seconds_per_step, scores)


def runs(*scores, **options):
    return [curve(score, f"run_{i}", **options) for i, score in enumerate(scores)]


def columns(section, name):
    return [record[name] for record in section.records]


def test_the_numbers_are_those_of_the_statistics():
    x, y = np.arange(10.0) + 4.5, np.arange(9.0)
    groups = {"y": {"Cart": runs(*y)}, "x": {"Cart": runs(*x, seconds_per_step=0.02)}}
    (section,) = comparison.compare(groups).sections
    assert columns(section, "group") == ["x", "y"]
    assert columns(section, "seeds") == [10, 9]
    for record, scores in zip(section.records, (x, y), strict=True):
        expected = statistics.summarize(scores)
        assert record["iqm"] == expected.interquartile_mean
        found = record["iqm_lower"], record["iqm_upper"]
        np.testing.assert_allclose(
            found, expected.interquartile_mean_interval, atol=0.15
        )
        assert (record["best"], record["steps"]) == (max(scores), 2000)
    assert columns(section, "seconds") == [40, 20]
    expected = rank_tests.improvement(x[:, None], y[:, None])
    assert section.records[1]["improvement"] == expected.value
    assert section.records[1]["improvement_lower"] == expected.lower
    assert section.records[1]["p_value"] == expected.p_value
    assert np.isnan([section.records[0][x] for x in ("improvement", "p_value")]).all()


def test_runs_are_compared_at_the_steps_that_all_reached():
    """Evaluations a little beside the last common step count as at it."""
    long = np.arange(0, 6000, 1000)
    groups = {
        "x": {"Cart": [curve(50, steps=long), curve(60, "late", long + 7)]},
        "y": {"Cart": [curve(2, "short"), curve(3)]},
    }
    compared = comparison.compare(groups)
    (note,) = [note for note in compared.notes if "compared at" in note]
    assert note == (
        "Cart: compared at 2,000 steps, the end of short; 2 of 4 runs are longer. The "
        "evaluations that count are of x at 2,000 to 2,007, y at 2,000 steps."
    )
    first, second = compared.sections[0].records
    assert (first["steps"], first["iqm"]) == (2000, (20 + 24) / 2)
    assert (second["steps"], second["iqm"]) == (2000, 2.5)


def test_an_untrained_policy_is_not_compared_with_trained_ones():
    """The next evaluation is not nearer, and the one before it was at step 0."""
    late = np.array([0, 14_000, 28_000])
    groups = {
        "dqn": {"Cart": runs(9, 9, steps=np.array([0, 3000, 6000]))},
        "ppo": {"Cart": [curve(100, "late", late), curve(6, "in_time")]},
    }
    compared = comparison.compare(groups)
    told = " ".join(compared.notes)
    assert (
        "evaluation of a trained policy until 2,000 steps: run_0, run_1, late" in told
    )
    assert columns(compared.sections[0], "group") == ["ppo"]
    groups["ppo"]["Cart"].pop()
    compared = comparison.compare(groups)
    assert "without an evaluation of a trained policy until 6,000 steps: late." in (
        " ".join(compared.notes)
    )
    assert columns(compared.sections[0], "group") == ["dqn"]


def test_between_two_evaluations_the_earlier_one_counts():
    often = np.array([0, 1000, 2000, 3000, 5000])
    groups = {
        "x": {"Cart": [curve(5, "x", often)]},
        "y": {"Cart": [curve(6, "y", np.array([0, 3000, 6000]))]},
    }
    compared = comparison.compare(groups)
    assert columns(compared.sections[0], "iqm") == [5, 3]
    assert columns(compared.sections[0], "steps") == [5000, 3000]
    assert "of x at 5,000, y at 3,000 steps." in " ".join(compared.notes)
    both = [curve(5, "x", often), curve(6, "y", np.array([0, 3000, 5000]))]
    (row,) = comparison.compare({"x": {"Cart": both}}).sections[0].rows
    # y has no trained policy at 1,000 and 2,000.
    assert row.steps.tolist() == [0, 3000, 5000]
    np.testing.assert_allclose(row.scores[0], [[0, 3.75, 5], [0, 3, 6]])


def test_a_run_that_has_not_trained_does_not_shorten_the_others():
    begun = comparison.Curve("begun", np.zeros(1), np.zeros(1), np.zeros(1))
    compared = comparison.compare({"x": {"Cart": [*runs(5, 6), begun]}})
    assert columns(compared.sections[0], "steps") == [2000]
    assert columns(compared.sections[0], "seeds") == [2]
    assert any("begun" in note for note in compared.notes)
    with pytest.raises(ValueError, match="got no evaluation of a trained policy"):
        comparison.compare({"x": {"Cart": [begun]}})


def test_a_diverged_run_counts_as_the_worst_and_is_named():
    lost = comparison.Curve("lost", STEPS, STEPS / 100, np.array([0, 5, np.nan]))
    groups = {"x": {"Cart": [*runs(5, 6, 7), lost]}, "y": {"Cart": runs(1, 2, 3, 4)}}
    compared = comparison.compare(groups)
    first, second = compared.sections[0].records
    assert (first["iqm"], first["best"]) == (5.5, 7)
    assert second["improvement"] == 12 / 16
    assert "Cart: NaN, which counts as the lowest: lost." in compared.notes


def test_several_environments_are_tasks():
    """Ragged: x has 2 runs on Cart and 3 on Pole."""
    groups = {
        "x": {"Cart": runs(5, 7), "Pole": runs(-9, -8, -7)},
        "y": {"Cart": runs(6, 6), "Pole": runs(-20, -30), "Bob": runs(1)},
    }
    compared = comparison.compare(groups)
    assert [each.title for each in compared.sections] == [
        "Cart",
        "Pole",
        "Bob",
        "all 2 environments",
    ]
    together = compared.sections[-1].records
    # 2 of 4 pairs on Cart, all 6 on Pole; returns of two tasks have no mean.
    assert columns(compared.sections[-1], "group") == ["x", "y"]
    assert together[1]["improvement"] == (0.5 + 1) / 2
    assert np.isnan([together[0]["iqm"], together[0]["best"]]).all()

    ranges = {"Cart": (0, 10), "Pole": (-30, -10), "Bob": (0, 1)}
    normalized = comparison.compare(groups, normalize=ranges).sections[-1].records
    expected = statistics.interquartile_mean([0.5, 0.7, 1.05, 1.1, 1.15])
    assert normalized[0]["iqm"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="normalize: got 20 twice for 'Pole', expec"):
        comparison.compare(groups, normalize={**ranges, "Pole": (20, 20)})
    with pytest.raises(ValueError, match="normalize: got no scores of 'Pole'"):
        comparison.compare(groups, normalize={"Cart": (0, 1), "Bob": (0, 1)})


@pytest.mark.parametrize("tasks_of_y", [["Pole"], ["Pole", "Cart"]])
def test_without_two_common_environments_each_is_compared_alone(tasks_of_y):
    groups = {"x": {"Cart": runs(5, 7)}, "y": dict.fromkeys(tasks_of_y, runs(6, 7))}
    compared = comparison.compare(groups)
    assert [each.title for each in compared.sections] == ["Cart", "Pole"]
    assert "No two environments have all groups" in " ".join(compared.notes)
    assert compared.sentence.startswith("Cart: ")
    assert compared.sentence.endswith(
        "Pole: y is the only group, so nothing is compared."
    )


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (
            {"x": runs(5, 6, 7, 8), "y": runs(1, 2, 3, 4)},
            "x is ahead of y: probability of improvement 1.00 [0.55, 1.00], p = 0.029.",
        ),
        (
            {"x": runs(5, 6, 7, 8), "y": runs(1, 2, 3, 4), "z": runs(0, 0, 0, 0)},
            "x is ahead of y and z: probability of improvement at least 1.00",
        ),
        # Three runs are in a complete order too often by chance.
        (
            {"x": runs(5, 6, 7), "y": runs(1, 2, 3)},
            "x cannot be told apart from y: probability of improvement 1.00 [0.45, "
            "1.00], p = 0.1; about 3 more seeds a group would decide it.",
        ),
        (
            {"x": runs(5, 6, 7, 8), "y": runs(8, 7, 6, 5), "z": runs(0, 0, 0, 0)},
            "x cannot be told apart from y: probability of improvement 0.50",
        ),
        (
            {"x": runs(5, 6, 7, 8), "y": runs(8, 7, 6, 5)},
            "; over 1,000 more seeds a group would decide it.",
        ),
        (
            {"x": runs(5, 6, 7, 8), "y": runs(1)},
            "A group with a single run cannot be compared; train at least 6 seeds",
        ),
        ({"x": runs(5, 6)}, "x is the only group, so nothing is compared."),
    ],
)
def test_the_sentence(groups, sentence):
    compared = comparison.compare({name: {"Cart": own} for name, own in groups.items()})
    assert sentence in compared.sentence


def test_a_single_run_has_no_interval_and_few_runs_are_told():
    compared = comparison.compare(
        {"x": {"Cart": runs(5, 6)}, "y": {"Cart": runs(1)}, "z": {"Cart": runs(3)}}
    )
    for record in compared.sections[0].records[1:]:
        assert np.isnan([record["iqm_lower"], record["improvement_lower"]]).all()
        assert record["improvement"] == 1
    assert "One run, and so no interval: z and y." in compared.notes
    assert any("fewer than 10 runs" in note for note in compared.notes)


def test_the_files_hold_the_table_and_the_figure(tmp_path):
    groups = {
        name: {"Cart": runs(*own), "Pole": runs(*own)}
        for name, own in {"x": (5, 6, 7), "y": (1, 2), "z": (np.nan,)}.items()
    }
    compared = comparison.compare(groups, metric="score")
    compared.write(tmp_path / "new")
    text = (tmp_path / "new" / "compare.md").read_text()
    assert text == f"{compared}\n"
    assert text.startswith("Cart, score:\n\n| group | seeds | IQM [95 %]")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 3 * 5
    assert len({len(line) for line in table[:5]}) == 1
    with open(tmp_path / "new" / "compare.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["group"] for row in rows] == list("xyz") * 3
    assert float(rows[0]["iqm"]) == 6
    assert rows[2]["iqm_lower"] == rows[-1]["iqm"] == "nan"
    assert (tmp_path / "new" / "compare.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"compare\.md', where there is one already; "):
        compared.write(tmp_path / "new")
    compared.write(tmp_path / "new", overwrite=True)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "compare.png").touch()
    with pytest.raises(ValueError, match=r"compare\.png', where there is something "):
        compared.write(tmp_path / "own", overwrite=True)
    assert len([*(tmp_path / "own").iterdir()]) == 1


@pytest.mark.parametrize("number", [1, 2])
def test_a_comparison_that_was_cut_short_is_replaced(tmp_path, monkeypatch, number):
    compared = comparison.compare({"x": {"Cart": runs(1, 2)}})
    rename, left = os.replace, iter(range(number))

    def run_out(new, path):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(new, path)

    monkeypatch.setattr(os, "replace", run_out)
    with pytest.raises(OSError, match="No space"):
        compared.write(tmp_path)
    monkeypatch.undo()
    assert len([*tmp_path.iterdir()]) == number
    compared.write(tmp_path, overwrite=True)
    assert len([*tmp_path.iterdir()]) == 3


def test_a_group_has_the_same_colour_in_all_panels():
    groups = {name: {"Cart": runs(i, i + 3)} for i, name in enumerate("xyz")}
    picture = comparison.compare(groups).draw()
    steps, seconds, profile, _ = picture.axes
    drawn = [line.get_color() for line in steps.lines]
    assert len(set(drawn)) == 3
    assert drawn == [line.get_color() for line in seconds.lines]
    assert drawn == [line.get_color() for line in profile.lines]
    (legend,) = picture.legends
    assert [text.get_text() for text in legend.get_texts()] == ["x", "y", "z"]


def test_nothing_to_compare_is_an_error():
    with pytest.raises(ValueError, match="groups: got no runs"):
        comparison.compare({})
