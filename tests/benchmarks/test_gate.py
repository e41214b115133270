"""The gate's comparison, its file and its words; a slow test counts."""

import platform

import pytest

from benchmarks import command_line, gate

LOCK = {
    "package": [
        {"name": name, "version": version}
        for name, version in [
            ("tensorflow", "2.21.0"),
            ("keras", "3.15.1"),
            ("numpy", "2.4.6"),
            ("numpy", "2.5.5"),
            ("tensorflow-probability", "0.25.0"),
            ("gymnasium", "1.4.0"),
        ]
    ]
}
VERSIONS = {each["name"]: each["version"] for each in LOCK["package"][::-1]}
STORED = {("DQN", "kernels"): 100.0, ("DQN", "copies"): 0.0, ("wheel", "bytes"): 1e6}


@pytest.fixture
def alike(monkeypatch):
    """Makes this process like those that are judged."""
    monkeypatch.setattr(gate.importlib.metadata, "version", VERSIONS.__getitem__)
    monkeypatch.setattr(gate.tomllib, "loads", lambda text: LOCK)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "11", "7"))


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Returns a function that runs the gate; it returns the status and the lines."""
    path = tmp_path / "gate.csv"
    gate.write(path, STORED)
    monkeypatch.setattr(gate, "STORED", path)

    def run_with(counts, *words):
        monkeypatch.setattr(gate, "count", lambda: {**STORED, **counts})
        status = command_line.main(["gate", *words])
        return status, capsys.readouterr().out.splitlines()

    return run_with


def test_the_same_counts_pass(alike, run):
    status, lines = run({})
    assert status == 0
    assert len(lines) == len(STORED)


def test_three_percent_more_pass_and_a_little_more_than_that_fails(alike, run):
    assert run({("DQN", "kernels"): 103})[0] == 0
    status, (*_, line) = run({("DQN", "kernels"): 104})
    assert status == 1
    assert line == (
        "DQN, kernels: got 104, expected at most 3 % more than 100; make it smaller "
        "again, or, if it is worth it, record it by python -m benchmarks gate "
        "--record, and say why in the commit."
    )


def test_a_first_copy_fails(alike, run):
    status, lines = run({("DQN", "copies"): 1})
    assert status == 1
    assert [line for line in lines if line.startswith("DQN, copies: got 1,")]


def test_far_fewer_pass_and_can_be_recorded(alike, run):
    assert len(run({("wheel", "bytes"): 980_000})[1]) == len(STORED)
    status, (*_, line) = run({("wheel", "bytes"): 900_000})
    assert status == 0
    assert line == (
        "wheel, bytes: 900,000, before 1,000,000; record it by "
        "python -m benchmarks gate --record, so that it stays."
    )


def test_a_figure_that_is_not_stored_fails_until_it_is_recorded(alike, run):
    new = {("SAC", "traces"): 3.0}
    status, (*_, line) = run(new)
    assert status == 1
    assert line.startswith("SAC, traces: counted alone; record the counts by python")
    assert run(new, "--record")[0] == 0
    assert gate.read(gate.STORED) == {**STORED, **new}
    assert run(new)[0] == 0
    status, (*_, line) = run({})
    assert status == 1
    assert line.startswith("SAC, traces: stored alone")


def test_a_count_is_a_line_of_the_file(alike, run):
    run({("DQN", "kernels"): 50.125}, "--record")
    assert gate.STORED.read_text().splitlines() == [
        "of,figure,count",
        "DQN,kernels,50.125",
        "DQN,copies,0",
        "wheel,bytes,1000000",
    ]


def test_other_versions_are_not_judged_nor_recorded(alike, run, monkeypatch, capsys):
    monkeypatch.setitem(VERSIONS, "keras", "3.16.0")
    monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "13", "1"))
    status, (*_, line) = run({("DQN", "kernels"): 1000})
    assert status == 0
    assert line == (
        "Not judged, because the stored counts are of others: Python: got 3.13, "
        "expected 3.11; keras: got 3.16.0, expected 3.15.1"
    )
    with pytest.raises(SystemExit, match="2"):
        run({}, "--record")
    assert "the counts would not be comparable: Python: got" in capsys.readouterr().err
    assert gate.read(gate.STORED) == STORED


def test_each_of_several_locked_versions_is_judged(alike, monkeypatch):
    assert gate.differences(LOCK) == ""
    monkeypatch.setitem(VERSIONS, "numpy", "2.5.5")
    assert gate.differences(LOCK) == ""
    monkeypatch.setitem(VERSIONS, "numpy", "2.1.0")
    expected = "numpy: got 2.1.0, expected 2.4.6 or 2.5.5"
    assert gate.differences(LOCK) == expected


@pytest.mark.slow
def test_a_loop_has_the_stored_figures_and_each_time_the_same():
    counts = gate.of_loop("DQN")
    assert counts == gate.of_loop("DQN")
    stored = gate.read(gate.STORED)
    assert [*counts] == [figure for part, figure in stored if part == "DQN"]
