"""Model cards of runs whose rows are made by hand."""

import errno
import os

import pytest

from tests.reports.test_health import healthy_rows
from tests.reports.test_report import write_run
from tfrl.reports import model_card


def test_a_card_has_files_returns_curve_film_settings_and_versions(tmp_path):
    rows = healthy_rows()
    rows[0]["versions"] = {"tensorflow": "2.21.0", "commit": "abc1234"}
    rows[-1] |= {"evaluation_returns": [1.0, 2.0, 3.0], "environment_steps": 4000}
    run = write_run(tmp_path / "run", rows, gamma=0.75)
    (run / "agent.mp4").write_bytes(b"film")
    folder = run / "export"
    folder.mkdir()
    (folder / "policy.onnx").write_bytes(b"")
    path = model_card.write(run, folder)
    text = path.read_text()
    assert text.startswith("---\nlibrary_name: tfrl\n")
    # Student's quantile of two degrees of freedom is 4.303.
    for words in (
        'tags: ["reinforcement-learning", "dqn", "CartPole-v1"]',
        "# DQN on CartPole-v1",
        "| policy.onnx | ONNX, for onnxruntime |",
        "Mean return 2 of 3 episodes, 95 % interval of the mean from -0.48414 to "
        "4.4841, greedily, after 4,000 steps",
        "| gamma | 0.75 |",
        "| commit | abc1234 |",
    ):
        assert words in text
    assert "policy.tflite" not in text
    assert (folder / "curve.svg").read_text().startswith("<svg")
    assert (folder / "agent.mp4").read_bytes() == b"film"
    assert model_card.write(run, folder) == path  # Its own card is replaced.


def test_a_card_that_was_cut_short_is_replaced(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", healthy_rows())
    (run / "agent.mp4").write_bytes(b"film")
    rename, left = os.replace, iter(range(2))

    def run_out(new, path):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(new, path)

    monkeypatch.setattr(os, "replace", run_out)
    with pytest.raises(OSError, match="No space"):
        model_card.write(run, run / "export")
    monkeypatch.undo()
    assert len([*(run / "export").iterdir()]) == 2
    model_card.write(run, run / "export")
    assert (run / "export" / "agent.mp4").read_bytes() == b"film"


def test_the_returns_are_those_of_the_best_evaluation_whose_policy_is_exported(
    tmp_path,
):
    rows = healthy_rows()
    for row in rows:
        row.pop("evaluation_lengths", None)
        row.pop("evaluation_returns", None)
        row.pop("evaluation_terminated", None)
    rows[0] |= {"iteration": 0, "evaluation_returns": [9.0], "environment_steps": 0}
    for i, (mean, steps) in enumerate([(1.0, 100), (5.0, 200), (5.0, 300), (2.0, 400)]):
        rows[i + 1] |= {"evaluation_returns": [mean], "environment_steps": steps}
    run = write_run(tmp_path / "run", rows)
    text = model_card.write(run, tmp_path / "out").read_text()
    assert "Mean return 5 of 1 episodes, greedily, after 300 steps" in text
    assert "best of 4 evaluations" in text


def test_texts_of_files_are_shown_as_they_are(tmp_path):
    run = write_run(
        tmp_path / "run",
        healthy_rows()[:2],
        env="<script>alert(1)</script>\n---\n# [x](javascript:0) |",
    )
    text = model_card.write(run, tmp_path / "out").read_text()
    assert "<script>" not in text.partition("\n---\n")[2]
    assert "[x](" not in text.partition("\n---\n")[2]
    assert text.count("\n---\n") == 1
    assert "Not evaluated." in text


def test_another_readme_stays(tmp_path):
    run = write_run(tmp_path / "run", healthy_rows()[:2])
    (tmp_path / "README.md").write_text("# My project")
    with pytest.raises(ValueError, match=r"^--output: got '.*', whose README.md is no"):
        model_card.write(run, tmp_path)
    assert (tmp_path / "README.md").read_text() == "# My project"
