"""Runs a part of the slow tests, and says which parts a change touches.

    python -m tests.slow_part 3                   one of the twelve
    python -m tests.slow_part failures            a file that is a part of its own
    python -m tests.slow_part all                 as .ci/slow does
    python -m tests.slow_part --touched=main      the parts that a change touches
    python -m tests.slow_part --record            keeps the seconds of the last runs

The twelve have neighbouring files, and take about the same time by the seconds in
tests/slow_seconds.csv; a file that takes longer than a part should is a part by its own
name. Each part writes its results to logs/slow/, from which --record updates that file.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree

from tests import touched
from tests.touched import ROOT

SECONDS = ROOT / "tests" / "slow_seconds.csv"
_RESULTS = ROOT / "logs" / "slow"
_NUMBER = 12
_ALONE = 600.0  # Seconds of one file's tests, which one process runs.
# What makes tests slow: the mark, and the functions of tests/pairs.py.
_SLOW = re.compile(r"mark\.slow|\bsome_slow\(|\bpairs\(")
_PYTEST = ("-m", "pytest", "-q", "-n", "auto", "--maxprocesses", "4")
_HOW = ("--dist", "loadfile", "-m", "slow", "-o", "junit_family=xunit1")


def main(words: Sequence[str] | None = None) -> int:
    """Runs parts of the slow tests, or what the flags say; returns the exit status."""
    options = _parse(words)
    if options.record:
        write(read() | measured(_RESULTS.glob("*.xml")))
        return 0
    of_files = parts(read())
    if options.touched:
        changed = touched.git("diff", "--name-only", f"{options.touched}...")
        changed += touched.git("diff", "--name-only", "HEAD")
        for part, files in touched_parts(of_files, changed).items():
            print(f"{part}: {len(files)} of {len(of_files[part])}: {' '.join(files)}")
        return 0
    chosen = list(of_files) if "all" in options.parts else options.parts
    for part in set(chosen) - set(of_files):
        print(f"part: expected all or one of {', '.join(of_files)}, got {part!r}")
        return 2
    return max(_run(part, of_files[part]) for part in chosen)


def parts(seconds: Mapping[str, float]) -> dict[str, list[str]]:
    """Returns the files of each part, by the parts' names.

    Args:
      seconds: What the slow tests of each file take.
    """
    found: dict[str, list[str]] = {str(i + 1): [] for i in range(_NUMBER)}
    # In the order of their paths, so that a change touches few parts.
    long = [file for file in sorted(seconds) if seconds[file] > _ALONE]
    weights = {x: max(seconds[x], 1.0) for x in sorted(seconds) if x not in long}
    total, before = sum(weights.values()), 0.0
    for file, weight in weights.items():
        middle = (before + weight / 2) / total
        found[str(int(_NUMBER * middle) + 1)].append(file)
        before += weight
    return found | {pathlib.Path(x).stem.removeprefix("test_"): [x] for x in long}


def touched_parts(
    of_files: Mapping[str, Sequence[str]], changed: Sequence[str]
) -> dict[str, list[str]]:
    """Returns the parts with tests that a changed file may reach, and these tests."""
    tests = touched.touches(changed, [f for files in of_files.values() for f in files])
    found = {part: [f for f in files if f in tests] for part, files in of_files.items()}
    return {part: files for part, files in found.items() if files}


def slow_files() -> list[str]:
    """Returns the files with slow tests, by their text."""
    return [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if _SLOW.search(path.read_text(encoding="utf-8"))
    ]


def read() -> dict[str, float]:
    """Returns the seconds of each file with slow tests; of a new one, none."""
    with SECONDS.open(encoding="utf-8", newline="") as text:
        known = {row["file"]: float(row["seconds"]) for row in csv.DictReader(text)}
    return {file: known.get(file, 0.0) for file in slow_files()}


def measured(results: Iterable[pathlib.Path]) -> dict[str, float]:
    """Returns what the tests of each file took, by reports in JUnit's form."""
    seconds: dict[str, float] = defaultdict(float)
    for path in results:
        for test in ElementTree.parse(path).iter("testcase"):
            seconds[test.attrib["file"]] += float(test.attrib["time"])
    return seconds


def write(seconds: Mapping[str, float]) -> None:
    """Writes the seconds of each file."""
    with SECONDS.open("w", encoding="utf-8", newline="") as text:
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["file", "seconds"])
        rows.writerows([file, round(seconds[file])] for file in sorted(seconds))


def _run(part: str, files: Sequence[str]) -> int:
    """Runs a part, and prints its row of the table; returns pytest's exit status."""
    _RESULTS.mkdir(parents=True, exist_ok=True)
    results = _RESULTS / f"{part}.xml"
    started = time.monotonic()
    status = subprocess.call(
        [sys.executable, *_PYTEST, *_HOW, f"--junit-xml={results}", *files], cwd=ROOT
    )
    suite = next(ElementTree.parse(results).iter("testsuite")).attrib
    print(
        f"part {part}: {time.monotonic() - started:.0f} s, {suite['tests']} tests, "
        f"{suite['failures']} failed, {suite['errors']} errors, "
        f"{suite['skipped']} skipped",
        flush=True,
    )
    return status


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.slow_part")
    parser.add_argument("parts", nargs="*", metavar="part", help="1 to 12, a name, all")
    parser.add_argument(
        "--touched",
        metavar="COMMIT",
        help="print the parts and the files that the changes since a commit may reach",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the seconds of the last runs to tests/slow_seconds.csv",
    )
    options = parser.parse_args(words)
    if not (options.parts or options.touched or options.record):
        parser.error("expected a part, all, --touched or --record")
    return options


if __name__ == "__main__":
    sys.exit(main())
