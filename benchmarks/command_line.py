"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import importlib
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks import (
    comparison,
    gate,
    measurement,
    peers,
    plot,
    processes,
    report,
    timing,
)

NAMES = ("dqn", "tutorial", "reinforce", "compiled", "sweep", "buffer", "startup")
_ON_DEMAND = (
    *("sac", "td3", "crossq", "ppo", "pqn", "dreamer", "overlap", "predict"),
    *("bandits", "pages", "atari", "envpool", "jax", "service", "worker_failures"),
    "gpu",
)
_ON_ALL_CORES = ("overlap", "service", "gpu")  # Their processes use several threads.
_WORKERS = "benchmarks/workers"
_ALONE = ("startup", "atari", "envpool", "worker_failures")  # Without contenders.


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs benchmarks, or the gate; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["gate"]:
        return gate.main(words[1:])
    options = _parse(words)
    if options.make_peers:
        peers.main([])
    options.output.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        text = stack.enter_context(
            (options.output / "report.txt").open("w", encoding="utf-8")
        )

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=text, flush=True)

        pool = processes.Pool(options.timeout)
        stack.callback(pool.close)
        session = measurement.Session(
            quick=options.quick,
            rounds=options.rounds or (3 if options.quick else 11),
            seconds=options.seconds or (0.15 if options.quick else 0.7),
            pool=pool,
            say=say,
            clock=options.clock,
            against=options.against,
            device=options.device,
        )
        if options.against:
            _say_against_what(options.against, say)
        started = time.perf_counter()
        with timing.declared():
            finished = _run(options.benchmarks, options.cores, session)
        for title, versions in pool.versions.items():
            said = ", ".join(f"{name} {value}" for name, value in versions.items())
            say(f"{title}: {said}")
        _say_how_busy(session)
        report.write_csv(session.results, options.output)
        if options.against:
            for line in comparison.summary(session.results):
                say(line)
            comparison.write_csv(session.results, options.output / "against.csv")
        plot.draw(session.results, options.output / "benchmarks.png")
        seconds = time.perf_counter() - started
        say(f"{seconds:.0f} s; tables, CSV and plot are in {options.output}")
    return 0 if finished else 130


def _run(names: Sequence[str], cores: str | None, session: measurement.Session) -> bool:
    """Runs benchmarks; returns False if they were interrupted."""
    said = ""
    try:
        for name in names:
            many = name in _ON_ALL_CORES
            with _pinned(cores or ("all" if many else None)) as where:
                how = (
                    f"{session.rounds} rounds of windows of {session.seconds:g} s "
                    f"each, contenders in turn, {where}, "
                    f"{'' if many else 'one thread each, '}{session.clock} time.\n"
                )
                if how != said:
                    session.say(how)
                said = how
                pinned = len(session.windows)
                importlib.import_module(f"benchmarks.{name}").run(session)
                if many:
                    # They wait for other processes, or for a GPU, in any case.
                    del session.windows[pinned:]
    except KeyboardInterrupt:
        session.say("Interrupted: the remaining benchmarks are left out.")
        return False
    return True


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures tfrl and its peers in turn, and reports the ratios. "
        "Without names it runs " + ", ".join(NAMES) + ".",
        epilog="`python -m benchmarks gate` compares counts instead; see its --help.",
    )
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="name",
        help=f"benchmarks to run: {', '.join((*NAMES, *_ON_DEMAND))}",
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure less, in about two minutes"
    )
    parser.add_argument("--rounds", type=int, help="windows per contender")
    parser.add_argument("--seconds", type=float, help="length of a window in seconds")
    parser.add_argument(
        "--cores",
        help="the cores to pin all processes to, such as 0 or 2,3, or all (default: "
        f"the first; all for {', '.join(_ON_ALL_CORES)})",
    )
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu counts a contender's processor time, without waiting",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        help="seconds to wait for a contender's answer",
    )
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=pathlib.Path("logs/benchmarks"),
        help="the folder for tables, CSV and plot (default: logs/benchmarks)",
    )
    parser.add_argument(
        "--device",
        help="where gpu trains, beside the CPU (default: the first GPU, if TensorFlow "
        "sees one)",
    )
    parser.add_argument(
        "--make-peers",
        action="store_true",
        help="make the peers' missing Python environments first; see benchmarks.peers",
    )
    parser.add_argument(
        "--against",
        type=_checkout,
        metavar="PATH",
        help="another checkout of tfrl, which its own workers measure in the same "
        f"rounds; peers, floors, {', '.join(_ALONE)} are left out",
    )
    options = parser.parse_args(arguments)
    for name in options.benchmarks:
        if name not in (*NAMES, *_ON_DEMAND):
            parser.error(
                f"expected names of {', '.join((*NAMES, *_ON_DEMAND))}, got {name!r}"
            )
    if options.device and "gpu" not in options.benchmarks:
        parser.error(f"--device: got {options.device!r} without the benchmark gpu")
    if options.against is None:
        options.benchmarks = options.benchmarks or list(NAMES)
        return options
    for name in options.benchmarks:
        if name in _ALONE:
            parser.error(
                f"{name} cannot be measured with --against: leave out one of them"
            )
    options.benchmarks = options.benchmarks or [n for n in NAMES if n not in _ALONE]
    return options


def _checkout(path: str) -> pathlib.Path:
    """Parses the folder of `--against`."""
    folder = pathlib.Path(path).resolve()
    if not all((folder / part).is_dir() for part in (_WORKERS, "tfrl")):
        raise argparse.ArgumentTypeError(
            f"expected a checkout of tfrl, a folder with tfrl/ and {_WORKERS}/, "
            f"got {folder}"
        )
    return folder


def _say_against_what(checkout: pathlib.Path, say: Callable[[str], None]) -> None:
    """Says which checkout is the other one, and which of its workers differ."""
    say(f"this: {processes.ROOT}; other: {checkout}")
    ours, theirs = processes.ROOT / _WORKERS, checkout / _WORKERS
    names = sorted(path.name for path in ours.glob("*.py"))
    _, differ, missing = filecmp.cmpfiles(ours, theirs, names, shallow=False)
    if differ or missing:
        say(
            "The measured code may differ, because each checkout runs its own workers "
            f"and these are not the same: {', '.join([*differ, *missing])}"
        )


@contextlib.contextmanager
def _pinned(cores: str | None) -> Iterator[str]:
    """Pins this process and its children to cores; yields a description of them."""
    if cores == "all" or not hasattr(os, "sched_setaffinity"):
        yield "not pinned"
        return
    before = os.sched_getaffinity(0)
    cores = cores or str(min(before))
    try:
        os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
    except (OSError, ValueError) as error:
        sys.exit(f"error: --cores: expected numbers of cores, got {cores!r}: {error}")
    try:
        yield f"pinned to core {cores}"
    finally:
        os.sched_setaffinity(0, before)


def _say_how_busy(session: measurement.Session) -> None:
    """Warns if the contenders had to share their core with other processes."""
    shares = [window.cpu_seconds / window.seconds for window in session.windows]
    if shares and statistics.median(shares) < 0.9:
        session.say(
            f"The contenders had {100 * statistics.median(shares):.0f} % of a core "
            "(median): other processes were running; compare only the ratios."
        )
