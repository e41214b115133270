"""Measures the time from the start of a program to the first update, and of its parts.

    python -m benchmarks startup --clock=cpu

A program that finds its compiled programs in the cache is "warm"; one that fills the
cache is "cold". The programs are those of `benchmarks.workers.start`. What else people
wait for is measured, too: an evaluation, `predict`, a report, and short commands.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import command_line, processes, report
from benchmarks.measurement import Session
from benchmarks.workers import start as worker

_STATES = ("cold", "warm")
_MOST_ROUNDS = 3
# Commands by what their last words are; "{folder}" is the folder of a short run.
_COMMANDS = (
    ("--help",),
    ("train", "ppo", "--help"),
    ("list", "settings"),
    ("evaluate", "{folder}"),
    ("report", "{folder}"),
)


def run(session: Session) -> None:
    """Runs the benchmark."""
    rounds = 1 if session.quick else min(session.rounds, _MOST_ROUNDS)
    cases = list(worker.CASES)[: 1 if session.quick else None]
    try:
        for case in cases:
            told = [_cold_and_warm(case, session.clock) for _ in range(rounds)]
            session.add(_totals(case, told))
            session.add(_parts(case, told))
        session.add(_result("commands", _commands(session.clock, rounds)))
    except subprocess.CalledProcessError as error:
        session.say(f"startup: failed: {error.stderr[-1000:]}\n")


def _cold_and_warm(case: str, clock: str) -> dict[str, dict[str, Any]]:
    """Runs a case twice with one cache; returns what each process told."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            state: first_update(case, clock, pathlib.Path(folder)) for state in _STATES
        }


def first_update(case: str, clock: str, folder: pathlib.Path) -> dict[str, Any]:
    """Returns the seconds, "wall" or "cpu", of a case and of its parts.

    Args:
      case: A name in `workers.start.CASES`.
      clock: "wall" or "cpu".
      folder: The folder of the run and of the cache of compiled programs.
    """
    words = [case, clock, str(folder / "run")]
    output = _call(
        [sys.executable, "-m", "benchmarks.workers.start", *words],
        {"TFRL_CACHE_DIR": str(folder / "cache")},
    )
    told: dict[str, Any] = json.loads(output[output.rindex('{"to the first') :])
    return told


def _totals(case: str, told: Sequence[Mapping[str, Any]]) -> report.Result:
    totals = {
        f"tfrl, {state}": [each[state]["to the first update"] for each in told]
        for state in _STATES
    }
    calls = {
        "tfrl, a call of predict, milliseconds": [
            1e3 * each["warm"]["a call of predict"] for each in told
        ]
    }
    return _result(f"{case}, to the first update", {**totals, **calls})


def _parts(case: str, told: Sequence[Mapping[str, Any]]) -> report.Result:
    seconds = {
        f"tfrl, {state}, {part}": [each[state]["parts"].get(part, 0) for each in told]
        for state in _STATES
        for part in told[0][state]["parts"]
    }
    return _result(f"{case}, by part", seconds)


def _result(title: str, seconds: Mapping[str, Sequence[float]]) -> report.Result:
    series = [report.Series(label, values) for label, values in seconds.items()]
    return report.Result("startup", title, "seconds", series, less_is_better=True)


def _commands(clock: str, rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of `_COMMANDS`, in each round."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        words = ["train", "ppo", f"--logdir={run}", "--num_iterations=1", "--nofilm"]
        _call([sys.executable, "-m", "tfrl", *words])
        return {
            f"tfrl {' '.join(words)}".replace("{folder}", "RUN"): [
                _seconds_of([word.format(folder=run) for word in words], clock)
                for _ in range(rounds)
            ]
            for words in _COMMANDS
        }


def _seconds_of(words: Sequence[str], clock: str) -> float:
    """Returns the seconds that a command of tfrl takes."""
    started = _seconds(clock)
    _call([sys.executable, "-m", "tfrl", *words])
    return _seconds(clock) - started


def _seconds(clock: str) -> float:
    """Returns the time, or the processor time that the child processes have used."""
    times = os.times()
    return (
        times.children_user + times.children_system if clock == "cpu" else time.time()
    )


def _call(command: list[str], variables: Mapping[str, str] | None = None) -> str:
    result = subprocess.run(
        command,
        env={**processes.environment_variables(), **(variables or {})},
        cwd=processes.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


if __name__ == "__main__":
    sys.exit(command_line.main(["startup", *sys.argv[1:]]))
