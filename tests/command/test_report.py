"""`tfrl report`, on runs whose rows are made by hand."""

import sys

import pytest

from tests.reports.test_health import healthy_rows
from tests.reports.test_report import write_run
from tfrl.command import report


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["tfrl report", *map(str, words)])
    report.main()


def test_a_run_gets_its_report_with_the_settings_that_are_not_defaults(
    tmp_path, monkeypatch, capsys
):
    rows = [{**row, "dormant_layer": 1.0} for row in healthy_rows()]
    folder = write_run(tmp_path / "run", rows, agent="dqn", gamma=0.5)
    run(monkeypatch, folder)
    output = capsys.readouterr().out
    assert "units: 100% of the units of a hidden layer" in output
    assert str(folder / "report.html") in output
    assert "<td><b>0.5</b></td>" in (folder / "report.html").read_text()


def test_several_runs_need_a_file(tmp_path, monkeypatch, capsys):
    folders = [
        write_run(tmp_path / name, healthy_rows()[:6], agent="dqn") for name in "ab"
    ]
    with pytest.raises(SystemExit):
        run(monkeypatch, *folders)
    assert "--output: got none for several runs" in capsys.readouterr().err
    run(monkeypatch, *folders, f"--output={tmp_path / 'all.html'}")
    assert (tmp_path / "all.html").exists()


def test_a_folder_without_a_run_is_named(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path)
    assert f"{str(tmp_path)!r} holds no config.json" in capsys.readouterr().err
