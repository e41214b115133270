"""Runs a part of the slow tests, and says which parts a change touches.

    python -m tests.slow_part 3                   one of the twelve
    python -m tests.slow_part failures            a file that is a part of its own
    python -m tests.slow_part all                 as .ci/slow does
    python -m tests.slow_part --touched=main      the parts to run for a change
    python -m tests.slow_part --record            keeps the seconds of the last runs

The twelve take about the same time, by the seconds in tests/slow_seconds.csv; a file
that takes longer than a part should is a part by its own name. Each part writes its
results to logs/slow/, from which --record updates that file.
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
        changed = _git("diff", "--name-only", f"{options.touched}...")
        changed += _git("diff", "--name-only", "HEAD")
        print(*touched_parts(of_files, changed) or ["none"])
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
    loads = dict.fromkeys(found, 0.0)
    for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
        if seconds[file] > _ALONE:
            found[pathlib.Path(file).stem.removeprefix("test_")] = [file]
            continue
        lightest = min(loads, key=loads.__getitem__)
        found[lightest].append(file)
        loads[lightest] += max(seconds[file], 1.0)
    return found


def touched_parts(
    of_files: Mapping[str, Sequence[str]], changed: Sequence[str]
) -> list[str]:
    """Returns the parts with a test that a changed file may reach."""
    tests = touched.touches(changed, [f for files in of_files.values() for f in files])
    return [part for part, files in of_files.items() if tests & set(files)]


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


def _git(*words: str) -> list[str]:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True).splitlines()


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.slow_part")
    parser.add_argument("parts", nargs="*", metavar="part", help="1 to 12, a name, all")
    parser.add_argument(
        "--touched",
        metavar="COMMIT",
        help="print the parts that the changes since a commit may reach, by imports",
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
