"""Trains PPO and DQN on Pong beside Stable-Baselines3's PPO, each on one core.

    python -m benchmarks.pong                        # four hours each
    python -m benchmarks.pong --only=ppo --hours=0.5

DQN stores each frame once; Stable-Baselines3 is in the peers' environment "torch"
(`python -m benchmarks.peers torch`). PPO has the same settings in both. The learning
curves are written to benchmarks/pong.csv while they run. `python -m benchmarks.scores
--table` then compares them in docs/scores.md, at the frames that both runs of PPO have
reached.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import commits, peers, processes
from benchmarks.score_entries import ROOT
from tfrl.compilation import processors
from tfrl.reports import plots

GAME = "PongNoFrameskip-v4"
FRAMES = 4  # Of an action.
CSV = ROOT / "benchmarks" / "pong.csv"
TITLES = {"ppo": "PPO", "dqn": "DQN", "sb3": "PPO of Stable-Baselines3"}
_FIELDS = ("run", "seed", "frames", "return", "seconds", "commit", "processor")


def command(run: str, seconds: float, seed: int) -> list[str]:
    """Returns the command that trains a run.

    Raises:
      PeerError: The peer's environment is missing.
    """
    if run != "sb3":
        module = "benchmarks.workers.pong_with_tfrl"
        return [sys.executable, "-m", module, run, str(seconds), str(seed)]
    worker = ROOT / "benchmarks" / "workers" / "pong_with_torch.py"
    words = peers.installed_python("torch"), worker, seconds, seed
    return [str(word) for word in words]


def train(run: str, seconds: float, seed: int, path: pathlib.Path = CSV) -> None:
    """Trains a run, and writes its curve while it trains.

    Raises:
      PeerError: The peer's environment is missing.
      RuntimeError: The run failed, or the folder is no git repository.
    """
    kept = [row for row in read(path) if (row["run"], row["seed"]) != (run, str(seed))]
    commit, processor = commits.current_commit(), processors.description()
    with (
        subprocess.Popen(
            command(run, seconds, seed),
            cwd=ROOT,
            env={**os.environ, **processes.ONE_THREAD},
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
        open(path, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
        for line in process.stdout or ():
            if line.startswith("{"):
                point = json.loads(line)
                writer.writerow(
                    {
                        "run": run,
                        "seed": seed,
                        "frames": point["frames"],
                        "return": f"{point['return']:.2f}",
                        "seconds": f"{point['seconds']:.0f}",
                        "commit": commit,
                        "processor": processor,
                    }
                )
                file.flush()
    if process.returncode:
        raise RuntimeError(f"{TITLES[run]} ended with status {process.returncode}.")


def read(path: pathlib.Path = CSV) -> list[dict[str, str]]:
    """Returns the points of all curves, as text."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def section(rows: Sequence[Mapping[str, str]], picture: pathlib.Path) -> list[str]:
    """Draws the curves and returns the lines of the page; no lines without curves.

    Args:
      rows: The points of all curves.
      picture: Where to save the picture.
    """
    curves = {run: [row for row in rows if row["run"] == run] for run in TITLES}
    curves = {run: points for run, points in curves.items() if points}
    if not curves:
        return []
    _draw(curves, picture)
    lines = [
        "## Pong",
        "",
        "One run each of PongNoFrameskip-v4 on one core. Returns are means of the last",
        "ten episodes of training, with exploration: -21 is the worst, 21 the best.",
        "Frames are the console's, four for an action. PPO has rl-zoo3's settings for",
        "40,000,000 frames in both libraries, and the actor and the critic share their",
        "convolutions. DQN stores 100,000 frames once and has an update for 4 steps;",
        "its target network follows every 1,000 steps, and epsilon falls to 0.01",
        "during the first 100,000 steps. `python -m benchmarks.pong` trains the runs,",
        "and `--hours` limits the processor time of each. Seconds can be compared only",
        "between runs on the same processor.",
        "",
        "| run | frames | return | seconds | frames per second | commit | processor |",
        "|---|---|---|---|---|---|---|",
        *(_line(TITLES[run], points[-1]) for run, points in curves.items()),
        "",
    ]
    if {"ppo", "sb3"} <= curves.keys():
        frames = min(int(curves[run][-1]["frames"]) for run in ("ppo", "sb3"))
        own, other = (_at(curves[run], frames) for run in ("ppo", "sb3"))
        lines += [
            f"After {frames:,} frames, which both runs of PPO have seen, tfrl's",
            f"returns {own['return']} after {own['seconds']} seconds, and",
            f"Stable-Baselines3's {other['return']} after {other['seconds']} seconds.",
            "",
        ]
    return [*lines, f"![Returns on Pong](scores/{picture.name})", ""]


def _line(title: str, last: Mapping[str, str]) -> str:
    frames, seconds = int(last["frames"]), float(last["seconds"])
    cells = (
        title,
        f"{frames:,}",
        last["return"],
        last["seconds"],
        f"{frames / seconds:.0f}",
        last["commit"],
        last["processor"],
    )
    return f"| {' | '.join(cells)} |"


def _at(points: Sequence[Mapping[str, str]], frames: int) -> Mapping[str, str]:
    """Returns the last point of a curve that is not after so many frames."""
    return [point for point in points if int(point["frames"]) <= frames][-1]


def _draw(
    curves: Mapping[str, Sequence[Mapping[str, str]]], picture: pathlib.Path
) -> None:
    from matplotlib import figure

    drawn = figure.Figure(figsize=(10, 3), layout="constrained")
    for axes, name, unit in zip(
        drawn.subplots(1, 2, sharey=True),
        ("frames", "seconds"),
        ("frames", "seconds of one core"),
        strict=True,
    ):
        for i, run in enumerate(TITLES):
            points = curves.get(run, ())
            axes.plot(
                [float(point[name]) for point in points],
                [float(point["return"]) for point in points],
                color=f"C{i}",
                label=TITLES[run] if points else None,
            )
        axes.set(xlabel=unit, ylim=(-21.5, 21.5))
        plots.shorten_ticks(axes)
        axes.grid(alpha=0.3)
    drawn.axes[0].set_ylabel("return of training")
    drawn.axes[0].legend()
    picture.parent.mkdir(exist_ok=True)
    drawn.savefig(picture, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains the runs; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pong", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", choices=TITLES, help="one of the runs")
    parser.add_argument("--hours", type=float, default=4.0, help="of one core, each")
    parser.add_argument("--seed", type=int, default=0, help="of the runs")
    options = parser.parse_args(arguments)
    for run in TITLES if options.only is None else (options.only,):
        train(run, 3600 * options.hours, options.seed)
        print(f"{TITLES[run]}: {_line('', read()[-1])}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
