"""Trains the runs of sweep_dqn.py in processes, for environments that are not native.

Each run is an ordinary run of train_dqn.py in a folder of its own, and resumes by
itself. Its printed output is in output.txt in its folder.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from tfrl.algorithms import child_runs, registry
from tfrl.algorithms import settings as settings_lib
from tfrl.command import cli

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


def train_all(config: cli.Config, runs: Sequence[Run], processes: int) -> None:
    """Trains all runs, at most `processes` at the same time.

    Raises:
      KeyboardInterrupt: Ctrl-C was pressed; the runs have saved checkpoints.
      Terminated: SIGTERM or SIGHUP came; the same holds.
      RuntimeError: A run failed.
    """
    # The processes share the processors.
    share = max(1, child_runs.num_processors() // min(processes, len(runs)))
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(share)

    print(f"{processes} at a time; each prints to its output.txt.", flush=True)

    def report(number: int, status: int) -> None:
        rate, seed, _ = runs[number]
        ending = "ended" if status == 0 else f"ended with status {status}"
        print(f"learning rate {rate:g}, seed {seed}: {ending}", flush=True)

    children = [
        child_runs.ChildRun(run[-1], train_dqn_flags(config, run), "examples.train_dqn")
        for run in runs
    ]
    child_runs.check(children, child_runs.train_all(children, processes, report))


def train_dqn_flags(config: cli.Config, run: Run) -> list[str]:
    """Returns the flags with which train_dqn.py trains one run of the sweep."""
    rate, seed, _ = run
    fields = _fields(config, rate, seed)
    return [f"--config.{name}={value}" for name, value in fields.items()]


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
