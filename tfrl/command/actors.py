"""Trains with actors in separate processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from absl import flags

from tfrl import distribute
from tfrl.command import cli, runs, tracking
from tfrl.environments import suites


def define_flag() -> Any:
    """Defines `--num_actors`."""
    return flags.DEFINE_integer(
        "num_actors",
        0,
        "Actors in separate processes; 0 trains in one process.",
        lower_bound=0,
    )


def text_of_processes(
    num_actors: int,
    num_shards: int = 1,
    num_learners: int = 1,
    *,
    evaluator: bool = False,
    where: str = "processes on this host",
) -> str:
    """Returns a line about the processes that a run starts.

    Args:
      num_actors: The number of actors.
      num_shards: The number of replay servers.
      num_learners: The number of learners.
      evaluator: Whether there is an evaluator.
      where: What and where they are.
    """
    numbers = {
        "actor": num_actors,
        "replay server": num_shards,
        "learner": num_learners,
        "evaluator": int(evaluator),
    }
    parts = [f"{n} {name}{'s' * (n > 1)}" for name, n in numbers.items() if n]
    return f"Starting {', '.join(parts)}: {where}."


def train_with_actors(
    config: cli.Config, make_experiment: Callable[..., distribute.Experiment]
) -> None:
    """Trains for `config.num_iterations` updates, in `logs/ALGORITHM_actors_...`.

    Args:
      config: The configuration. The numbers of iterations in it count updates.
      make_experiment: Makes the experiment; takes the values of the flags, see
        `runs.flag_values`.

    Raises:
      ValueError: The configuration has a length in environment steps, or an initial
        run, or the run is to be tracked.
    """
    cli.refuse_environment_steps(config)
    cli.refuse_initial_run(config)
    tracking.refuse()
    name = f"{config.agent}_actors"
    cli.prepare(name, config, text_of_processes(flags.FLAGS.num_actors))
    suites.check_actors(config.env)
    directory = cli.make_directory(name, config)
    result = distribute.run_distributed(
        make_experiment(**runs.flag_values()),
        directory,
        flags.FLAGS.num_actors,
        config.num_iterations,
    )
    cli.report(result, directory)
