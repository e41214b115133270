"""Trains the runs of sweep_dqn.py in processes, for environments that are not native.

Each run is an ordinary run of train_dqn.py in a folder of its own, and resumes by
itself. Its printed output is in output.txt in its folder.
"""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Sequence
from typing import Any

from tfrl import train
from tfrl.algorithms import registry
from tfrl.algorithms import settings as settings_lib
from tfrl.command import cli
from tfrl.system import interrupts, jobs

# The rate, the seed and the folder of a run.
Run = tuple[float, int, pathlib.Path]


def learning_rates(words: Sequence[str]) -> list[float]:
    """Returns the learning rates of the sweep, whose names of folders differ.

    Raises:
      ValueError: A word is no number that a learning rate can be, or two are the same.
    """
    remedy = "set --learning_rates=3e-4,1e-3, say"
    try:
        rates = [float(word) for word in words]
    except ValueError:
        rates = []
    if not rates or len({f"{rate:g}" for rate in rates}) < len(rates):
        raise ValueError(
            f"learning_rates: expected different numbers, with commas, got "
            f"{','.join(words)!r}; {remedy}."
        )
    for rate in rates:
        settings_lib.FROM_0("learning_rates", rate, remedy=remedy)
    return rates


def train_all(
    config: cli.Config, runs: Sequence[Run], processes: int
) -> train.SweepCurves:
    """Trains all runs, at most `processes` at the same time.

    Raises:
      KeyboardInterrupt: Ctrl-C or SIGTERM came; the runs have saved checkpoints.
      RuntimeError: A run failed.
    """
    # The processes share the processors.
    share = max(1, (os.cpu_count() or 1) // min(processes, len(runs)))
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(share)

    print(f"{processes} at a time; each prints to its output.txt.", flush=True)

    def report(number: int, status: int) -> None:
        rate, seed, _ = runs[number]
        ending = "ended" if status == 0 else f"ended with status {status}"
        print(f"learning rate {rate:g}, seed {seed}: {ending}", flush=True)

    made = [
        jobs.Job("examples.train_dqn", train_dqn_flags(config, run), output_of(run))
        for run in runs
    ]
    signals = interrupts.requested((signal.SIGINT, signal.SIGTERM), lambda: "the runs")
    with signals as is_requested:
        statuses = jobs.run_all(made, processes, is_requested, report)
    if is_requested():
        raise KeyboardInterrupt
    failed = [output_of(r) for r, status in zip(runs, statuses, strict=True) if status]
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(runs)} runs failed; the end of these files says "
            f"why: {', '.join(map(str, failed))}. The same command tries them again."
        )
    rates, seeds, folders = zip(*runs, strict=True)
    return train.SweepCurves.read(
        [path / "metrics.csv" for path in folders], seeds, {"learning_rate": rates}
    )


def output_of(run: Run) -> pathlib.Path:
    """Returns the file of what a run prints."""
    return run[-1] / "output.txt"


def train_dqn_flags(config: cli.Config, run: Run) -> list[str]:
    """Returns the flags with which train_dqn.py trains one run of the sweep."""
    rate, seed, path = run
    fields = _fields(config, rate, seed)
    overrides = [f"--config.{name}={value}" for name, value in fields.items()]
    return [f"--logdir={path.absolute()}", *overrides]


def run_config(config: cli.Config, rate: float, seed: int) -> cli.Config:
    """Returns the configuration with which train_dqn.py trains one run of the sweep."""
    own = registry.config_for("dqn")
    own.update(_fields(config, rate, seed))
    return own


def _fields(config: cli.Config, rate: float, seed: int) -> dict[str, Any]:
    return {
        **config.to_dict(),
        "seed": seed,
        "learning_rate": rate,
        "final_learning_rate": rate,
        "collect_steps_per_iteration": 1,
        "train_steps_per_iteration": 1,
        "n_step_update": 1,
        # The losses are then means since the previous evaluation.
        "log_interval": config.eval_interval,
    }
