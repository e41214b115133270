"""`tfrl report`, on runs whose rows are made by hand."""

import warnings

import pytest

from tests.reports.test_health import healthy_rows
from tests.reports.test_report import write_run
from tfrl.command import report
from tfrl.reports import figures
from tfrl.reports import report as report_lib


def run(monkeypatch, *words):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    report.main([*map(str, words)])


def test_a_run_gets_its_report_with_the_settings_that_are_not_defaults(
    tmp_path, monkeypatch, capsys
):
    rows = [{**row, "dormant_layer": 1.0} for row in healthy_rows()]
    folder = write_run(tmp_path / "run", rows, algorithm="dqn", gamma=0.5)
    run(monkeypatch, folder)
    output = capsys.readouterr().out
    assert "units: 100% of the units of a hidden layer" in output
    assert str(folder / "report.html") in output
    assert "<td><b>0.5</b></td>" in (folder / "report.html").read_text()


def test_the_folder_of_the_file_is_made(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "run", healthy_rows()[:6], algorithm="dqn")
    output = tmp_path / "new" / "folder" / "report.html"
    run(monkeypatch, folder, f"--output={output}")
    assert output.exists()


def test_a_named_file_is_replaced_only_if_it_is_a_report(tmp_path, monkeypatch, capsys):
    folder = write_run(tmp_path / "run", healthy_rows()[:6], algorithm="dqn")
    output = tmp_path / "report.html"
    for content, words, text in (
        ("mine", ["--overwrite"], "something that tfrl did not write"),
        (report_lib.MARK, [], "one already; give overwrite=True or --overwrite"),
    ):
        output.write_text(content)
        with pytest.raises(SystemExit):
            run(monkeypatch, folder, f"--output={output}", *words)
        assert f"--output: got '{output}', where there is {text}" in (
            capsys.readouterr().err
        )
        assert output.read_text() == content
    run(monkeypatch, folder, f"--output={output}", "--overwrite")
    assert report_lib.MARK in output.read_text()[:200]


def test_several_runs_need_a_file(tmp_path, monkeypatch, capsys):
    folders = [
        write_run(tmp_path / name, healthy_rows()[:6], algorithm="dqn") for name in "ab"
    ]
    with pytest.raises(SystemExit):
        run(monkeypatch, *folders)
    assert "--output: got none for several runs" in capsys.readouterr().err
    run(monkeypatch, *folders, f"--output={tmp_path / 'all.html'}")
    assert (tmp_path / "all.html").exists()


def test_no_run_is_an_error(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch)
    assert "folders: got none" in capsys.readouterr().err


def test_a_folder_without_a_run_is_named(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path)
    said = capsys.readouterr().err
    assert f"folder: got {str(tmp_path)!r}, which holds no config.json" in said


def damage(name, *changes):
    """Returns a function that damages a file: by new content, or by replacements."""

    def change(folder):
        path = folder / name
        if len(changes) == 2:
            path.write_text(path.read_text().replace(*changes))
        elif isinstance(*changes, bytes):
            path.write_bytes(*changes)
        else:
            path.write_text(*changes)

    return change


CONFIG, ROWS = "config.json", "diagnostics.jsonl"
FATAL = {
    "empty": damage(CONFIG, ""),
    "cut": damage(CONFIG, '{"env": "Cart'),
    "list": damage(CONFIG, "[1, 2]"),
    "null": damage(CONFIG, "null"),
    "no text": damage(CONFIG, b'{"env": "\xff"}'),
    "deep": damage(CONFIG, "[" * 100_000),
    "half a character": damage(CONFIG, '"CartPole-v1"', r'"\ud800"'),
    "a folder": lambda folder: [(folder / ROWS).unlink(), (folder / ROWS).mkdir()],
    "no rows": lambda folder: (folder / ROWS).unlink(),
    "a folder for the report": lambda folder: (folder / "report.html").mkdir(),
}
# Of these the rest can be reported.
PARTIAL = {
    **{
        f"{name} is {value}": damage(CONFIG, f'"{name}": ', f'"{name}": {value}, "_": ')
        for name, value in (
            ("env", "3"),
            ("env", '["CartPole-v1"]'),
            ("algorithm", '{"a": 1}'),
            ("num_iterations", '"many"'),
            ("num_iterations", f"1{'0' * 400}"),
            ("gamma", "null"),
            ("batch_size", '"large"'),
            ("exploration_noise", "[1]"),
            ("vmax", '"high"'),
        )
    },
    **{
        f"{name} in rows is {value}": damage(
            ROWS, f'"{name}": ', f'"{name}": {value}, "_": '
        )
        for name, value in (
            ("environment_steps", "null"),
            ("environment_steps", '"x"'),
            ("train_steps", "[1]"),
            ("evaluation_lengths", "[1]"),
            ("evaluation_lengths", '["a", "b", "c"]'),
            ("evaluation_terminated", "null"),
            ("average_return", '"x"'),
            ("iteration", '"x"'),
            ("versions", '["2.21.0"]'),
            ("starting_seconds", '"x"'),
        )
    },
    "a byte": damage(ROWS, b'{"iteration": 1}\n{"\xff": 1}\n'),
    "bytes": damage(ROWS, bytes(range(256)) + b"\n"),
    "deep rows": damage(ROWS, "[" * 100_000 + "\n"),
}
SILENT = {
    "cut rows": damage(ROWS, '{"iteration": 1}\n{"iter'),
    "rows of nothing": damage(ROWS, ""),
    "a film elsewhere": lambda folder: (folder / "agent.mp4").symlink_to("/etc/passwd"),
    "a report elsewhere": lambda folder: (folder / "report.html").symlink_to("run.txt"),
    "numbers that are not finite": damage(
        ROWS, '"average_return": ', '"average_return": "nan", "_": '
    ),
}


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A run with all that is damaged below; figures are drawn elsewhere."""
    monkeypatch.setattr(report.report.figures, "draw", lambda *_: None)
    rows = [
        {**row, "versions": {"python": "3.11"}, "starting_seconds": 1.0}
        for row in healthy_rows()[:6]
    ]
    settings = {
        "algorithm": "dqn",
        "num_iterations": 100,
        "gamma": 0.9,
        "batch_size": 64,
    }
    settings |= {"exploration_noise": 0.1, "vmax": 100.0}
    return write_run(tmp_path / "run", rows, **settings)


@pytest.mark.parametrize("name", FATAL)
def test_a_run_that_cannot_be_read_is_named_in_one_line(
    name, hostile, monkeypatch, capsys
):
    FATAL[name](hostile)
    with pytest.raises(SystemExit) as error:
        run(monkeypatch, hostile)
    assert error.value.code == 2
    line, hint = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert hint.startswith("(--traceback shows where")
    assert str(hostile) in line


@pytest.mark.parametrize("name", PARTIAL)
def test_what_cannot_be_used_is_named_in_one_line_and_left_out(
    name, hostile, monkeypatch, capsys
):
    PARTIAL[name](hostile)
    run(monkeypatch, hostile)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: {hostile}")
    assert (hostile / "report.html").exists()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SILENT)
def test_what_is_no_fault_of_the_run_is_reported_in_silence(
    name, hostile, monkeypatch, capsys
):
    SILENT[name](hostile)
    run(monkeypatch, hostile)
    assert "data:video" not in (hostile / "report.html").read_text()
    assert not (hostile / "report.html").is_symlink()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("folder", "settings"),
    [("a$b$c", {}), ("run", {"env": r"$\frac{$"}), ("run", {"algorithm": "$x_$"})],
)
def test_dollars_in_names_are_no_mathematics(folder, settings, tmp_path, monkeypatch):
    made = write_run(tmp_path / folder, healthy_rows()[:4], **settings)
    output = tmp_path / "report.html"
    monkeypatch.setattr(report.report.figures, "FIGURES", figures.FIGURES[:1])
    run(monkeypatch, made, made, f"--output={output}")
    for name in settings.values():
        assert name.upper() in output.read_text().upper()
    if not settings:
        assert "a$b$c: evaluation return" in output.read_text()
