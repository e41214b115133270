"""Measures the time to the first training step of `tfrl train ddqn`.

    python -m benchmarks startup

It is compared with TensorFlow's own import, and divided into its parts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks import command_line, processes, report
from benchmarks.measurement import Session

_IMPORT = "python -c 'import tensorflow'"
_FIRST_STEP = "tfrl, train ddqn to its first step"
_BEYOND = "tfrl, that beyond its import of TensorFlow"
_OWN_IMPORT = "import of TensorFlow"


def run(session: Session) -> None:
    """Runs the benchmark."""
    rounds = 1 if session.quick else min(session.rounds, 5)
    imports, parts = [], []
    clock = session.clock
    try:
        if not session.quick:
            _import_seconds(clock)  # Loads the files into the system's cache.
        for _ in range(rounds):
            imports.append(_import_seconds(clock))
            parts.append(first_step(clock))
    except subprocess.CalledProcessError as error:
        session.say(f"startup: failed: {error.stderr[-1000:]}\n")
        return
    totals = [sum(part.values()) for part in parts]
    beyond = [sum(part.values()) - part[_OWN_IMPORT] for part in parts]
    session.add(
        report.Result(
            "startup",
            "from the command to the first training step",
            "seconds",
            [
                report.Series(_IMPORT, imports),
                report.Series(_FIRST_STEP, totals),
                report.Series(_BEYOND, beyond),
            ],
            references=(_IMPORT,),
            less_is_better=True,
        )
    )
    session.add(
        report.Result(
            "startup",
            "where the time to the first training step goes",
            "seconds",
            [
                report.Series(f"tfrl, {name}", [part[name] for part in parts])
                for name in parts[0]
            ],
            less_is_better=True,
        )
    )


def first_step(clock: str) -> dict[str, float]:
    """Returns the seconds, "wall" or "cpu", of each part of `tfrl train`'s start."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "benchmarks.workers.first_step"),
            clock,
            f"--logdir={os.path.join(folder, 'run')}",
        ]
        started = 0.0 if clock == "cpu" else time.time()
        output = _call(command)
    told = json.loads(output[output.rindex('{"marks"') :])
    marks, within = told["marks"], told["within"]
    rest = marks["trained"] - marks["imported"] - sum(within.values())
    return {
        "Python itself": marks["reached"] - started,
        _OWN_IMPORT: marks["tensorflow imported"] - marks["reached"],
        "other imports": marks["imported"] - marks["tensorflow imported"],
        **within,
        "the rest: flags, run folder, logs": rest,
    }


def _import_seconds(clock: str) -> float:
    started = _seconds(clock)
    _call([sys.executable, "-c", "import tensorflow"])
    return _seconds(clock) - started


def _seconds(clock: str) -> float:
    """Returns the time, or the processor time that the child processes have used."""
    times = os.times()
    return (
        times.children_user + times.children_system if clock == "cpu" else time.time()
    )


def _call(command: list[str]) -> str:
    result = subprocess.run(
        command,
        env=processes.environment_variables(),
        cwd=processes.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


if __name__ == "__main__":
    sys.exit(command_line.main(["startup", *sys.argv[1:]]))
