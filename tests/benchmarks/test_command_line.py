import csv
import os
import shutil
import sys
import types

import pytest

from benchmarks import command_line, processes, report


@pytest.fixture
def benchmark(monkeypatch):
    """Puts `run` in the place of the benchmark dqn."""

    def put(run):
        module = types.SimpleNamespace(run=run)
        monkeypatch.setitem(sys.modules, "benchmarks.dqn", module)

    return put


def _measure(session):
    series = [report.Series("tfrl", [2.0]), report.Series("Peer", [1.0])]
    session.add(report.Result("dqn", "the loop", "iterations/s", series, ("Peer",)))


def test_all_outputs_are_written(benchmark, tmp_path, capsys):
    benchmark(_measure)
    assert command_line.main(["dqn", f"--output={tmp_path / 'out'}"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "benchmarks.png",
        "measurements.csv",
        "report.txt",
        "summary.csv",
    ]
    shown = capsys.readouterr().out
    assert "dqn: the loop; iterations/s" in shown
    assert (tmp_path / "out" / "report.txt").read_text() == shown


def test_an_interrupted_run_keeps_what_was_measured(benchmark, tmp_path, capsys):
    def run(session):
        _measure(session)
        raise KeyboardInterrupt

    benchmark(run)
    assert command_line.main(["dqn", f"--output={tmp_path}"]) == 130
    assert "Interrupted" in capsys.readouterr().out
    assert "Peer" in (tmp_path / "summary.csv").read_text()


@pytest.mark.parametrize(
    ("flags", "rounds", "seconds"),
    [([], 11, 0.7), (["--quick"], 3, 0.15), (["--quick", "--rounds=7"], 7, 0.15)],
)
def test_a_quick_run_measures_less(benchmark, tmp_path, flags, rounds, seconds):
    sessions = []
    benchmark(sessions.append)
    command_line.main(["dqn", f"--output={tmp_path}", *flags])
    (session,) = sessions
    assert (session.rounds, session.seconds) == (rounds, seconds)
    assert session.quick == ("--quick" in flags)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot be pinned")
def test_all_runs_on_the_cores_named(benchmark, tmp_path):
    before, cores = os.sched_getaffinity(0), []
    benchmark(lambda _: cores.append(os.sched_getaffinity(0)))
    core = max(before)
    command_line.main(["dqn", f"--output={tmp_path}", f"--cores={core}"])
    assert cores == [{core}]
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot be pinned")
def test_what_takes_several_processes_has_all_cores(monkeypatch, tmp_path, capsys):
    cores = []
    module = types.SimpleNamespace(run=lambda _: cores.append(os.sched_getaffinity(0)))
    monkeypatch.setitem(sys.modules, "benchmarks.service", module)
    command_line.main(["service", f"--output={tmp_path}"])
    assert cores == [os.sched_getaffinity(0)]
    assert "not pinned" in capsys.readouterr().out


def test_an_unknown_benchmark_is_an_error(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["speed"])
    assert "expected names of dqn, tutorial" in capsys.readouterr().err


def test_cores_that_are_none_are_an_error(tmp_path):
    with pytest.raises(SystemExit, match="--cores: expected numbers of cores"):
        command_line.main(["dqn", f"--output={tmp_path}", "--cores=first"])


@pytest.fixture
def checkout(tmp_path):
    """Another checkout, as far as the command line looks at it."""
    for part in ("tfrl", "benchmarks/workers"):
        (tmp_path / "checkout" / part).mkdir(parents=True)
    return tmp_path / "checkout"


def test_another_checkout_is_compared_with(benchmark, tmp_path, capsys, checkout):
    def measure(session):
        assert session.against == checkout
        series = [report.Series("tfrl", [9.0] * 6)]
        series.append(report.Series("other: tfrl", [10.0] * 6))
        session.add(report.Result("dqn", "the loop", "iterations/s", series))

    benchmark(measure)
    flags = [f"--output={tmp_path / 'out'}", f"--against={checkout}"]
    assert command_line.main(["dqn", *flags]) == 0
    shown = capsys.readouterr().out
    assert f"other: {checkout}\n" in shown
    assert "slower than the other checkout: 1 of 1" in shown
    assert "slower" in (tmp_path / "out" / "against.csv").read_text()


@pytest.mark.parametrize("same", [True, False])
def test_workers_that_differ_are_named(benchmark, tmp_path, capsys, checkout, same):
    benchmark(lambda _: None)
    ours = processes.ROOT / "benchmarks" / "workers"
    shutil.copytree(ours, checkout / "benchmarks" / "workers", dirs_exist_ok=True)
    if not same:
        (checkout / "benchmarks" / "workers" / "serving.py").write_text("")
        (checkout / "benchmarks" / "workers" / "floors.py").unlink()
    command_line.main(["dqn", f"--output={tmp_path}", f"--against={checkout}"])
    named = "not the same: serving.py, floors.py\n" in capsys.readouterr().out
    assert named is not same


def test_what_is_no_checkout_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["dqn", f"--against={tmp_path}"])
    said = capsys.readouterr().err
    assert "expected a checkout of tfrl, a folder with tfrl/ and" in said
    assert f"got {tmp_path}" in said


def test_what_has_no_rounds_is_refused_beside_another_checkout(checkout, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["startup", f"--against={checkout}"])
    assert "startup cannot be measured with --against" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["dqn", "tutorial", "reinforce", "bandits", "buffer", "service", "startup"],
)
def test_our_own_contenders_are_measured(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TFRL_PEERS", str(tmp_path / "none"))
    flags = ["--quick", "--rounds=1", "--seconds=0.01", "--cores=all"]
    assert command_line.main([name, *flags, f"--output={tmp_path}"]) == 0
    lines = (tmp_path / "report.txt").read_text().splitlines()
    assert any(line.startswith("tfrl") for line in lines)
    assert not any("tfrl" in line and "not measured" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sweep", "service"])
def test_our_own_checkout_is_measured_beside_itself(name, tmp_path):
    flags = ["--quick", "--rounds=1", "--seconds=0.01", "--cores=all"]
    against = f"--against={processes.ROOT}"
    assert command_line.main([name, *flags, against, f"--output={tmp_path}"]) == 0
    said = (tmp_path / "report.txt").read_text()
    assert "not measured" not in said
    assert "failed" not in said
    with (tmp_path / "against.csv").open() as file:
        assert len(list(csv.DictReader(file))) >= 2
