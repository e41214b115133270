"""Trains double DQN with many seeds and learning rates, together.

    python -m examples.sweep_dqn
    python -m examples.sweep_dqn --num_seeds=16 --learning_rates=3e-4,1e-3,3e-3
    python -m examples.sweep_dqn --env=MountainCar-v0 --processes=4

All runs on one of `tfrl.environments.native.names()` are one compiled program. On any
other environment each run is a process of train_dqn.py, with as many at a time as there
are processors. The settings are in configs/sweep_dqn.py. To resume a sweep that was
interrupted or killed, run the same command again.

In --logdir, curves.csv has every evaluation of every run, and learning_curves.png shows
the interquartile mean of the runs with each learning rate. Each run has a folder in
runs/ with its config.json, metrics.csv and policy/, for examples.play --logdir=FOLDER
and for `tfrl compare`: the last policy of a run in one program, the best one of a run
in a process. `tfrl sweep` does the same for every algorithm.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import sys

from absl import flags

from examples import sweep_processes
from tfrl import environments, train
from tfrl.algorithms import child_runs, registry, spaces, sweeps, worlds
from tfrl.command import cli
from tfrl.environments import suites
from tfrl.system import interrupts, quiet

_CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
_CONFIG = cli.define_config("sweep_dqn", os.path.relpath(_CONFIGS) + os.sep)
_NUM_SEEDS = flags.DEFINE_integer(
    "num_seeds", 8, "Runs with each learning rate.", lower_bound=1
)
_LEARNING_RATES = flags.DEFINE_list("learning_rates", ["1e-3"], "Numbers, with commas.")
_PROCESSES = flags.DEFINE_integer(
    "processes",
    child_runs.num_processors(),
    "Most runs at a time, if they are processes.",
    lower_bound=1,
)


def main() -> None:
    """Runs the sweep and writes its curves."""
    config = cli.read_config(_CONFIG)
    rates = sweep_processes.learning_rates(_LEARNING_RATES.value)
    # Each processor trains its share of the runs in a thread of TensorFlow's; 0 makes
    # as many as there are processors.
    os.environ["TF_NUM_INTRAOP_THREADS"] = "0"
    quiet.quieten_tensorflow()
    seeds = range(config.seed, config.seed + _NUM_SEEDS.value)
    # Wrong settings show here, before a folder is made or a process starts.
    environment = make_environment(config, config.seed)
    make_loop(sweep_processes.run_config(config, rates[0], config.seed), environment)
    directory = cli.make_directory(
        "sweep_dqn", config, may_grow=(), learning_rates=rates, num_seeds=len(seeds)
    )
    runs = [
        (rate, seed, directory.path / "runs" / f"learning_rate_{rate:g}_seed_{seed}")
        for rate, seed in itertools.product(rates, seeds)
    ]
    print(f"{len(runs)} runs of {config.num_iterations:,} iterations.", flush=True)
    try:
        if not environment.calls_python:
            members = [
                sweeps.Member(folder, sweep_processes.run_config(config, rate, seed))
                for rate, seed, folder in runs
            ]
            sweeps.train_in_one_program(members, directory.checkpoints)
        else:
            environment.close()
            sweep_processes.train_all(config, runs, _PROCESSES.value)
    except (KeyboardInterrupt, interrupts.Terminated):
        print("Interrupted. Run the same command again to resume.")
        sys.exit(interrupts.exit_status())

    run_rates, run_seeds, folders = zip(*runs, strict=True)
    curves = train.SweepCurves.read(
        [folder / "metrics.csv" for folder in folders],
        run_seeds,
        {"learning_rate": run_rates},
    )
    curves.write_csv(directory.path / "curves.csv")
    curves.plot(directory.path / "learning_curves.png", group_by="learning_rate")
    for rate in rates:
        last = curves.returns[[run_rate == rate for run_rate, *_ in runs], -1]
        print(f"learning rate {rate:g}: {sweeps.summary(last)}")
    print(f"Outputs: {directory.path}")


def make_environment(config: cli.Config, seed: int) -> environments.TFEnvironment:
    """Makes the native environment of this name if there is one.

    Continuous actions are in `num_action_bins` bins.
    """
    bins = config.num_action_bins
    environment = worlds.make_environment(
        suites.find_dynamics(config.env) or config.env, config.num_envs, seed, bins
    )
    spaces.check_actions(
        environment.action_spec(), "discrete", "DQN", config.env, has_bins=True
    )
    return environment


def make_loop(
    config: cli.Config, environment: environments.TFEnvironment
) -> train.TrainingLoop:
    """Makes one run, as if it were trained alone.

    Args:
      config: The run's configuration; see `sweep_processes.run_config`.
      environment: The environment.
    """
    return registry.algorithm_of(config, environment).build()


if __name__ == "__main__":
    cli.start(main)
