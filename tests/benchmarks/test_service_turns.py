"""The turns of a server's loop are measured, and the longest is found."""

import time

import pytest

from benchmarks import service_turns
from benchmarks.workers import timed_server


def test_the_longest_turn_is_reported_with_what_was_done_in_it(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 14.0, 20.0, 22.0, 30.0, 31.0])
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    turns = timed_server.Turns()
    turns.end()  # Nothing has begun.
    for kinds in (["info"], ["mutate", "mutate", "reset"], []):
        turns.begin()
        for kind in kinds:
            turns.note(kind)
        turns.end()
    assert turns.report() == {
        "milliseconds": 4000.0,
        "kinds": ["mutate", "reset"],
        "turns": 3,
    }
    turns.begin()
    turns.end()
    assert turns.report() == {"milliseconds": 1000.0, "kinds": [], "turns": 1}


def test_a_turn_above_the_bound_is_a_fault():
    short = service_turns.Longest("a", 9.9, [], 3)
    long = service_turns.Longest("b", 10.2, ["mutate"], 3)
    assert service_turns.faults([short, long]) == [
        "b: a turn of 10.2 ms, expected at most 10 ms"
    ]
    assert "mutate" in long.line()
    assert "sending, receiving" in short.line()


@pytest.mark.slow
def test_all_scenarios_run_at_small_sizes():
    lines = []
    measured = service_turns.measure(service_turns.Sizes(300, 8), lines.append)
    assert len(lines) == len(measured) > 50
    kinds = {kind for longest in measured for kind in longest.kinds}
    # Which turn of a scenario is the longest, and so its kinds, the machine decides.
    assert len(kinds & {"write", "Write", "sample", "Sample", "info", "mutate"}) >= 3
    assert all(longest.turns > 0 for longest in measured)


def test_the_command_s_exit_status_tells_whether_a_bound_is_exceeded(
    monkeypatch, capsys
):
    turns = iter([30.0, 10.2, 11.0, 10.2, 30.0, 11.0])
    monkeypatch.setattr(
        service_turns,
        "measure",
        lambda sizes: [service_turns.Longest("b", next(turns), [], 3)],
    )
    assert service_turns.main([]) == 1
    assert "WRONG: b: a turn of 10.2 ms" in capsys.readouterr().out
    assert service_turns.main(["--bound=11"]) == 0


def test_the_shortest_of_a_scenario_s_longest_turns_counts():
    runs = [
        [service_turns.Longest(name, milliseconds, [], 3) for name, milliseconds in run]
        for run in ([("a", 4.0), ("b", 30.0)], [("a", 20.0), ("b", 5.0)])
    ]
    assert service_turns.shortest(runs) == [runs[0][0], runs[1][1]]
