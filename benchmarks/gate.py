"""Compares counts of what tfrl does with stored ones, on a machine that may be busy.

    python -m benchmarks gate             # ends with status 1 if a count has grown
    python -m benchmarks gate --record    # stores the counts in benchmarks/gate.csv

The counts are those of the compiled program of an iteration (`hlo_counts`), of the
calls of Python and the traces of a short run, of the modules and functions of a start
(`workers.counting`), and the bytes of the wheel. A count that is more than 3 % above
the stored one fails. Whoever records a larger one says in the commit why it has grown.

The processes run with `TFRL_PORTABLE=1`, so that XLA makes the same program on each x86
processor, without a cache of programs, in an empty home. Other releases of Python and
of the libraries give other counts: with those the counts are printed, and not judged.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import hlo_counts, hlo_text, processes
from benchmarks.workers import counting

STORED = processes.ROOT / "benchmarks" / "gate.csv"
PYTHON = "3.11"
MACHINE = "Linux x86_64"
_LOCK = processes.ROOT / "uv.lock"
# The packages whose releases change the counts.
_PACKAGES = ("tensorflow", "keras", "numpy", "tensorflow-probability", "gymnasium")
_MOST_GROWTH = 0.03
_RECORD = "python -m benchmarks gate --record"
_JOBS = 2
# What users set for these does not count.
_LEFT_OUT = ("CUDA_", "JAX_", "KERAS_", "PYTHON", "TF_", "TFRL_", "XLA_")

Key = tuple[str, str]  # Of what, and the figure.
Counts = Mapping[Key, float]


def main(words: Sequence[str]) -> int:
    """Counts, compares and prints; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--record", action="store_true", help=f"store the counts in {STORED.name}"
    )
    options = parser.parse_args(words)
    unlike = differences(tomllib.loads(_LOCK.read_text(encoding="utf-8")))
    if options.record and unlike:
        parser.error(f"--record: the counts would not be comparable: {unlike}")
    counts = count()
    stored = read(STORED)
    for line in table(counts, stored):
        print(line)
    if options.record:
        write(STORED, counts)
        print(f"Stored in {STORED}; say in the commit why counts have grown.")
        return 0
    if unlike:
        print(f"Not judged, because the stored counts are of others: {unlike}")
        return 0
    faults = [*grown(counts, stored), *unmatched(counts, stored)]
    for line in faults or fallen(counts, stored):
        print(line)
    return 1 if faults else 0


def differences(lock: Mapping[str, list[Mapping[str, str]]]) -> str:
    """Returns how this process differs from those that are judged; "" if it does not.

    Args:
      lock: The contents of `uv.lock`.
    """
    machine = f"{platform.system()} {platform.machine()}"
    python = ".".join(platform.python_version_tuple()[:2])
    found = {"machine": (machine, {MACHINE}), "Python": (python, {PYTHON})}
    for name in _PACKAGES:
        locked = {each["version"] for each in lock["package"] if each["name"] == name}
        found[name] = importlib.metadata.version(name), locked
    return "; ".join(
        f"{name}: got {value}, expected {' or '.join(sorted(expected))}"
        for name, (value, expected) in found.items()
        if value not in expected
    )


def count() -> dict[Key, float]:
    """Returns all counts, which take some processes."""
    jobs: dict[str, Callable[[], Mapping[str, float]]] = {
        **{name: functools.partial(of_loop, name) for name in counting.LOOPS},
        "import tfrl": functools.partial(_counted, "imports"),
        "tfrl train --help": functools.partial(_counted, "imports", "train", "--help"),
        "DQN to its first update": functools.partial(_counted, "start"),
        "wheel": _of_wheel,
    }
    with concurrent.futures.ThreadPoolExecutor(_JOBS) as pool:
        found = pool.map(lambda job: job(), jobs.values())
        return {
            (part, figure): value
            for part, figures in zip(jobs, found, strict=True)
            for figure, value in figures.items()
        }


def of_loop(name: str) -> dict[str, float]:
    """Returns the counts of a loop of `counting.LOOPS`, and of its program.

    A second one of the "programs" that XLA compiles is a second trace of the loop.
    """
    with tempfile.TemporaryDirectory() as folder:
        flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        ran = _counted("loop", name, XLA_FLAGS=flags)
        paths = sorted(pathlib.Path(folder).glob("*after_optimizations.txt"))
        text = paths[-1].read_text(encoding="utf-8")
    program = hlo_text.parse(text)
    return {
        "programs": len(paths),
        **hlo_counts.loop_counts(program),
        "bytes of state": hlo_counts.state_bytes(program),
        **ran,
    }


def _counted(*words: str, **variables: str) -> dict[str, float]:
    """Returns what a process of `workers.counting` counts."""
    command = [sys.executable, "-m", "benchmarks.workers.counting", *words]
    printed = _run(command, processes.ROOT, **variables)
    counts: dict[str, float] = json.loads(printed.splitlines()[-1])
    return counts


def _of_wheel() -> dict[str, float]:
    """Returns the size of the wheel, which is made of a copy of the package."""
    code = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for each in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(processes.ROOT / each, folder)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(processes.ROOT / "tfrl", folder / "tfrl", ignore=ignored)
        printed = _run([sys.executable, "-c", code], folder)
        wheel = folder / printed.splitlines()[-1]
        return {"bytes": wheel.stat().st_size}


def _run(command: Sequence[str], where: pathlib.Path, **variables: str) -> str:
    """Returns what a portable process prints."""
    kept = {x: y for x, y in os.environ.items() if not x.startswith(_LEFT_OUT)}
    with tempfile.TemporaryDirectory() as home:
        own = {
            "CUDA_VISIBLE_DEVICES": "",
            "HOME": home,
            "PYTHONHASHSEED": "0",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TFRL_CACHE_DIR": "off",
            "TFRL_PORTABLE": "1",
        }
        ended = subprocess.run(
            command,
            cwd=where,
            env={**kept, **own, **variables},
            capture_output=True,
            text=True,
        )
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr[-2000:]}")
    return ended.stdout


def read(path: pathlib.Path) -> dict[Key, float]:
    """Returns the counts of a file; none if there is no file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["of"], row["figure"]): float(row["count"])
            for row in csv.DictReader(file)
        }


def write(path: pathlib.Path, counts: Counts) -> None:
    """Writes the counts, a line each, so that a change of one is a line's."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["of", "figure", "count"])
        writer.writerows([*key, f"{counts[key]:.10g}"] for key in counts)


def table(counts: Counts, stored: Counts) -> Iterator[str]:
    """Yields a line for each count, beside the stored one."""
    for (part, figure), value in counts.items():
        before = stored.get((part, figure))
        beside = "" if before is None else f"{before:>14,.10g} {_change(value, before)}"
        yield f"{part:24}{figure:28}{value:>14,.10g} {beside}".rstrip()


def _change(value: float, before: float) -> str:
    if value == before:
        return ""
    return f"{100 * (value / before - 1):+.1f} %" if before else "+"


def grown(counts: Counts, stored: Counts) -> list[str]:
    """Returns a line for each count that is more than 3 % above the stored one."""
    return [
        f"{', '.join(key)}: got {counts[key]:,.10g}, expected at most 3 % more than "
        f"{stored[key]:,.10g}; make it smaller again, or, if it is worth it, record it "
        f"by {_RECORD}, and say why in the commit."
        for key in counts
        if key in stored and counts[key] > (1 + _MOST_GROWTH) * stored[key]
    ]


def fallen(counts: Counts, stored: Counts) -> list[str]:
    """Returns a line for each count that is more than 3 % below the stored one."""
    return [
        f"{', '.join(key)}: {counts[key]:,.10g}, before {stored[key]:,.10g}; record it "
        f"by {_RECORD}, so that it stays."
        for key in counts
        if key in stored and counts[key] < (1 - _MOST_GROWTH) * stored[key]
    ]


def unmatched(counts: Counts, stored: Counts) -> list[str]:
    """Returns a line for each figure that is only counted, or only stored."""
    return [
        f"{', '.join(key)}: {'counted' if key in counts else 'stored'} alone; record "
        f"the counts by {_RECORD}."
        for key in {**counts, **stored}
        if (key in counts) != (key in stored)
    ]
