"""Trains the agents of the examples with actors in processes of their own."""

from __future__ import annotations

from collections.abc import Callable

from absl import flags

from examples import cli, runs
from tfrl import distribute

NUM_ACTORS = flags.DEFINE_integer(
    "num_actors",
    0,
    "Actors in processes of their own; 0 trains in one process.",
    lower_bound=0,
)


def train_with_actors(
    config: cli.Config,
    algorithm: str,
    make_experiment: Callable[..., distribute.Experiment],
) -> None:
    """Trains for `config.num_iterations` updates, in `logs/ALGORITHM_actors_...`.

    Args:
      config: The configuration. The numbers of iterations in it count updates.
      algorithm: The name of the algorithm.
      make_experiment: Makes the experiment; takes the values of the flags, see
        `runs.flag_values`.

    Raises:
      ValueError: The configuration has a length in environment steps, or an initial
        run.
    """
    cli.refuse_environment_steps(config)
    cli.refuse_initial_run(config)
    name = f"{algorithm}_actors"
    cli.prepare(name, config)
    cli.refuse_games(config.env)
    directory = cli.make_directory(name, config)
    result = distribute.run_distributed(
        make_experiment(**runs.flag_values()),
        directory,
        NUM_ACTORS.value,
        config.num_iterations,
    )
    cli.report(result, directory)
