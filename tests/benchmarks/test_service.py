"""The replay service's benchmark: what is measured, and how it is judged."""

from __future__ import annotations

import pathlib

import pytest

from benchmarks import measurement, processes, report, service


@pytest.fixture
def session():
    said = []
    pool = processes.Pool(timeout=10)
    made = measurement.Session(False, 1, 0.1, pool, said.append)
    made.said = said
    return made


def _measured(row, reverb, **ours):
    series = [report.Series("Reverb", [reverb]), *map(_series, ours.items())]
    return report.Result("service", row.title, "items/s", series, ("Reverb",))


def _series(item):
    label = {"ours": "tfrl", "tcp": "tfrl, TCP", "unix": "tfrl, Unix socket"}[item[0]]
    return report.Series(label, [item[1]])


def test_all_contenders_of_a_row_do_the_same():
    addresses = dict.fromkeys(service.SYSTEMS, "somewhere")
    for row in service.rows(quick=False):
        group = row.group(addresses)
        assert len({(c.task, str(c.settings)) for c in group.contenders}) == 1
        assert [c.label for c in group.contenders][:2] == ["Reverb", "tfrl"]
        assert all(
            c.system.partition(":")[0] in processes.SYSTEMS for c in group.contenders
        )


def test_another_checkouts_contenders_ask_its_own_server():
    labels = ("tfrl", "tfrl, Unix socket", "tfrl, TCP")
    addresses = {"Reverb": "", **dict.fromkeys(labels, "ours")}
    addresses |= {f"other: {label}": "its" for label in labels}
    for row in service.rows(quick=False):
        group = row.group(addresses).against(pathlib.Path("/other"))
        assert len(group.contenders) in (2, 6)
        for contender in group.contenders:
            is_other = contender.label.startswith("other: ")
            assert contender.settings["address"] == ("its" if is_other else "ours")
            assert contender.system.endswith("@/other") == is_other


def test_a_quick_run_measures_some_of_the_rows():
    quick = {row.title for row in service.rows(quick=True)}
    assert 5 < len(quick) < len({row.title for row in service.rows(quick=False)})
    assert quick < {row.title for row in service.rows(quick=False)}


def test_results_are_held_against_their_targets(session):
    rows = {row.title: row for row in service.rows(quick=False)}
    write = rows["write small items, a flush every 16"]
    sample = rows["sample stacks, batches of 256"]
    one = rows["client.sample, one of small items"]
    session.results = [
        _measured(write, 10.0, ours=14.0),
        _measured(sample, 10.0, ours=20.0, tcp=6.0, unix=7.0),
        _measured(one, 1_000.0, ours=1_000.0),
    ]
    lines = list(service.against_targets(session, [write, sample, one]))
    assert [line.split()[-1] for line in lines] == ["SHORT", "ok", "ok", "SHORT", "ok"]
    assert "1.40 x  >= 1.5 x" in lines[0]
    assert "1.00 ms  <= 2 ms" in lines[-1]


def test_what_could_not_be_measured_is_no_success(session):
    row = next(service.rows(quick=False))
    session.results = [_measured(row, 1.0)]
    (line,) = service.against_targets(session, [row])
    assert line.endswith("not measured")
