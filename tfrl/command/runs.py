"""Trains the algorithm that a configuration names."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from absl import flags

from tfrl import agents, train
from tfrl.algorithms import registry, run_settings
from tfrl.command import cli, tracking


def define_config(
    name: str, folder: str | None = None, *, only_with_actors: bool = False
) -> Any:
    """Defines the flags of a command that trains.

    Args:
      name: See `cli.define_config`.
      folder: See `cli.define_config`.
      only_with_actors: Whether the command always trains with actors in processes, so
        that its length is a number of updates, and its weights are new.
    """
    config = cli.define_config(name, folder)
    # `cli.read_config` reads these two.
    if not (only_with_actors or registry.find(name.removesuffix("+")).is_offline):
        flags.DEFINE_integer(
            "num_environment_steps",
            None,
            "Environment steps of the run, instead of num_iterations.",
        )
    if not only_with_actors:
        flags.DEFINE_string(
            "initial_run", None, "Folder of a run, to begin with its last weights."
        )
        tracking.define_flag()
    flags.DEFINE_bool(
        "film", True, "Film the best policy at the end; --nofilm does not."
    )
    flags.DEFINE_bool(
        "report", True, "Write report.html at the end; --noreport does not."
    )
    flags.DEFINE_bool(
        "evaluate_untrained", True, "Evaluate the policy before the first iteration."
    )
    flags.DEFINE_bool("continue", False, "Continue with a run that a callback stopped.")
    flags.DEFINE_bool(
        "quiet", False, "Show no progress, only warnings and the last lines."
    )
    return config


def run(config: cli.Config, names: tuple[str, ...]) -> None:
    """Builds the environment, the agent and the loop of a configuration, and trains.

    Args:
      config: The configuration, as `cli.read_config` returns it.
      names: The names in `config.agent` of the algorithms that the script trains.

    Raises:
      ValueError: A setting is wrong.
    """
    name = cli.agent_name(config, names)
    tracking.check()
    cli.prepare(name, config)
    algorithm = registry.algorithm_of(config)
    loop = algorithm.build(
        prepare=lambda agent: load_initial_weights(name, config, agent)
    )
    run_loop(config, loop, cli.make_directory(name, config))


def load_initial_weights(name: str, config: cli.Config, agent: agents.TFAgent) -> None:
    """Loads the weights of `--initial_run`, unless the run has its own checkpoint.

    Args:
      name: The algorithm's name in the names of folders.
      config: The configuration, as `cli.read_config` returns it.
      agent: The agent, after `initialize`.
    """
    initial_run = config.get("initial_run")
    if initial_run is None or cli.has_checkpoint(name, config):
        return
    path = train.load_weights(agent, initial_run)
    if not flags.FLAGS.quiet:
        print(f"Initial weights: {path}", file=sys.stderr)


def run_loop(
    config: cli.Config, loop: train.TrainingLoop, directory: train.RunDirectory
) -> None:
    """Trains to the end; evaluates, logs and saves during training."""
    kind = registry.find(config.agent)
    s = kind.Settings.of(config)
    run = train.Run(
        loop,
        directory,
        **dataclasses.asdict(cli.length(config)),
        loggers=tracking.make_loggers(directory),
        **run_settings.make(
            registry.algorithm_of(config).world,
            s,
            loop.agent,
            kind.title,
            **flag_values(),
        ),
    )
    cli.report(run.run(), directory)


def flag_values() -> dict[str, bool]:
    """Returns the arguments of `run_settings.make` that are flags of the command."""
    return {
        "films": flags.FLAGS.film,
        "evaluates_untrained": flags.FLAGS.evaluate_untrained,
        "shows_progress": not flags.FLAGS.quiet,
        "reports": flags.FLAGS.report,
        "continue_stopped": cli.continues(),
    }
