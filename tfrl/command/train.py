"""Trains an algorithm in an environment, and writes the outputs to a folder.

    tfrl train sac --env=Pendulum-v1 --seed=3
    tfrl train ppo --env=HalfCheetah-v5 --num_environment_steps=1000000

The folder is logs/ALGORITHM_ENVIRONMENT_SEED, or --logdir. The same command resumes a
run that was interrupted or killed.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from tfrl import train as train_lib
from tfrl.algorithms import registry
from tfrl.algorithms.recipe import Recipe
from tfrl.command import (
    config_files,
    errors,
    parsing,
    program,
    tracking,
)
from tfrl.experiments import actors, distributed, single
from tfrl.system import interrupts, log, paths, threads

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def start(algorithm: str | type[Builder], text: str) -> None:
    """Trains an algorithm as a program of its own, by the flags in `sys.argv`.

    Args:
      algorithm: The algorithm's name, or its class.
      text: The first text of `--help`.
    """
    program.handle_interrupts()
    threads.set_up()
    kind = registry.find(algorithm) if isinstance(algorithm, str) else algorithm
    main(kind, sys.argv[1:], text)


def main(kind: type[Builder], words: Sequence[str], text: str | None = None) -> None:
    """Trains an algorithm by the flags in some words.

    Args:
      kind: The algorithm's class.
      words: The words after its name.
      text: The first text of `--help`; None for the algorithm's.
    """
    parsing.import_suite(words)
    given = define_flags(kind)
    add_actor_flags(given, kind.name)
    program.start(
        given, words, lambda: run(kind, given), lambda: help_text(kind, given, text)
    )


def define_flags(kind: type[Builder]) -> flags.FlagValues:
    """Returns the flags of commands that train an algorithm."""
    given = parsing.new(
        env="Gymnasium environment, such as CartPole-v1.",
        logdir="Folder of the run, by default in logs.",
        preset="Settings of this name; tfrl list settings shows them.",
        config="File of settings: JSON, a run's config.json, or Python.",
        initial_run="Folder of a run, to begin with its last weights.",
    )
    if not kind.is_offline:
        text = "Environment steps of the run, instead of num_iterations."
        flags.DEFINE_integer("num_environment_steps", None, text, flag_values=given)
    for name, default, text in (
        ("overwrite", False, "Remove the outputs of an earlier run first."),
        ("continue", False, "Continue a run that a callback stopped."),
        ("evaluate_untrained", True, "Evaluate before the first iteration, too."),
        ("film", True, "Film the best policy; --nofilm does not."),
        ("report", True, "Write report.html; --noreport does not."),
        ("portable", False, "Round alike on x86 processors with AVX2, where possible."),
        ("quiet", False, "Show only warnings and the last lines."),
        ("trust", False, "Import the module that a file of --config names."),
    ):
        parsing.add(given, name, default, text)
    tracking.define_flag(given)
    parsing.add_fields(given, kind.run_fields())
    return given


def add_actor_flags(given: flags.FlagValues, name: str) -> None:
    """Defines the flags of runs with actors, if the algorithm can have some."""
    if name not in actors.OF_REPLAY + actors.OF_QUEUE:
        return
    text = "Actors in processes; 0: one process does all."
    parsing.add(given, "num_actors", 0, text, least=0)
    parsing.add(given, "num_shards", 1, "Replay servers, which share the capacity.")
    parsing.add(given, "num_learners", 1, "Replicas of the learner, with --num_actors.")
    parsing.add(given, "evaluator", False, "Evaluate in a process of its own.")
    parsing.add_choice(
        given,
        "launcher",
        "local",
        ["local", "ray", "command"],
        "What starts the processes: local, ray, or command, whose lines you run.",
    )
    flags.DEFINE_string(
        "address",
        None,
        "Of Ray's cluster: auto or host:port. With --launcher=command, the address of "
        "this host for the others, host:port.",
        flag_values=given,
    )
    parsing.add_choice(
        given,
        "schedule",
        "free",
        ["free", "lockstep"],
        "free, or lockstep, which gives the same run twice (ppo and impala).",
    )
    parsing.add_fields(given, actors.ActorSettings.setting_fields())


def help_text(
    kind: type[Builder], given: flags.FlagValues, text: str | None = None
) -> str:
    """Returns the help, with the settings for the environment that is given."""
    name = kind.name
    first = text or (
        f"{kind.__doc__}\n\n"
        f"    tfrl train {name}\n"
        f"    tfrl train {name} --env={kind.environment_name} --seed=3\n\n"
        "To resume a run that was interrupted or killed, run the same command again. "
        "Watch\nit with `tensorboard --logdir=logs`."
    )
    try:
        with log.silenced():
            recipe = recipe_of(kind, given)
    except (TypeError, ValueError) as error:
        errors.exit_with(str(error))
    fields = kind.run_fields()
    # The other fields are options of environments.
    usual = {k: x.default for k, x in fields.items() if k not in recipe.settings}
    values = {**recipe.settings, **usual}
    rows = [(f"--{k}={x}", fields[k].metadata["text"]) for k, x in values.items()]
    return (
        f"{parsing.help_text(first, given, fields)}\n\n"
        f"Settings, {name} for {recipe.environment}:\n{parsing.table(rows)}"
    )


def recipe_of(kind: type[Builder], given: flags.FlagValues) -> Recipe:
    """Returns the recipe that flags describe: a file's or a preset's, with changes.

    Args:
      kind: The algorithm's class.
      given: The flags.

    Raises:
      ValueError: A setting is wrong, or a file or a preset is for another algorithm.
    """
    typed = parsing.typed(given)
    file, preset, name = (typed.get(x) or "" for x in ("config", "preset", "env"))
    if file and preset:
        raise ValueError(
            f"preset: got {preset!r}, and the settings of {file!r}; give one of them."
        )
    if file:
        trusts = bool(name or typed.get("trust"))
        base = config_files.read(file, kind, trusts=trusts)
    else:
        has_actors = bool(typed.get("num_actors"))
        base = Recipe.of(kind, name, preset, has_actors=has_actors)
    lengths = {"initial_run", "num_environment_steps"}
    changes = typed.keys() & (kind.run_fields().keys() | lengths)
    return base.changed(environment=name, **{x: typed[x] for x in changes})


def folder_of(given: flags.FlagValues, name: str, recipe: Recipe) -> pathlib.Path:
    """Returns the folder of `--logdir`, by default a separate one for each seed."""
    words = f"{name}_{recipe.environment}_{recipe.settings['seed']}"
    return pathlib.Path(given.logdir or pathlib.Path("logs", paths.file_name(words)))


def options_of(given: flags.FlagValues) -> dict[str, Any]:
    """Returns the arguments of `single.train` that are flags."""
    return {
        "films": given["film"].value,
        "evaluates_untrained": given["evaluate_untrained"].value,
        "shows_progress": not given["quiet"].value,
        "reports": given["report"].value,
        "continue_stopped": given["continue"].value,
        "overwrite": given["overwrite"].value,
    }


def run(kind: type[Builder], given: flags.FlagValues) -> None:
    """Trains, and prints how the run ended."""
    options, recipe = options_of(given), recipe_of(kind, given)
    if "num_actors" in given and given["num_actors"].value:
        folder = folder_of(given, f"{kind.name}_actors", recipe)
        result = _train_with_actors(recipe, folder, given, options)
    else:
        folder = folder_of(given, kind.name, recipe)
        make_loggers = tracking.loggers_of(given["track"].value)
        _name_idle_flags(given)
        result = single.train(recipe, folder, make_loggers=make_loggers, **options)
    report(result, folder)


def _name_idle_flags(given: flags.FlagValues) -> None:
    """Names the flags that only runs with actors have, if there are none."""
    only = {*actors.ActorSettings.setting_fields(), "num_shards", "num_learners"}
    if idle := [f"--{x}" for x in given if x in only and given[x].present]:
        verb = "does" if len(idle) == 1 else "do"
        log.info(f"{', '.join(idle)} {verb} nothing without actors; set --num_actors.")


def _train_with_actors(
    recipe: Recipe,
    folder: pathlib.Path,
    given: flags.FlagValues,
    options: Mapping[str, Any],
) -> train_lib.RunResult | None:
    """Trains with actors in processes.

    Raises:
      ValueError: A flag is for a run in one process alone.
    """
    if track := given["track"].value:
        raise ValueError(
            f"track: got {track!r}, but a run of actors and a learner logs "
            "to its folder alone; leave it out, or train in one process without actors."
        )
    if steps := recipe.num_environment_steps:
        raise ValueError(
            f"num_environment_steps: got {steps} with actors, whose length is a number "
            "of updates; give --num_iterations."
        )
    typed, fields = parsing.typed(given), actors.ActorSettings.setting_fields()
    settings = {
        **(recipe.actors or {}),
        **{name: typed[name] for name in typed.keys() & fields},
        **{name: given[name].value for name in ("num_shards", "schedule")},
    }
    names = ("num_actors", "num_learners", "evaluator", "launcher", "address")
    arguments: dict[str, Any] = {name: given[name].value for name in names}
    recipe = dataclasses.replace(recipe, actors=settings)
    return distributed.train(recipe, folder, **arguments, **options)


def report(result: train_lib.RunResult | None, folder: pathlib.Path) -> None:
    """Prints how a run ended.

    If a signal has interrupted it, the process exits with 128 + the signal's number.

    Args:
      result: The result; None if the run had ended before.
      folder: The folder of its outputs.
    """
    if result is not None and not (result.finished or result.stopped_by):
        sys.exit(interrupts.exit_status())
    if result is not None and result.last_return is not None:
        # Not at the top: --help does not wait for tqdm.
        from tfrl.train.runs import progress

        steps, updates = result.environment_steps_per_second, result.updates_per_second
        words = [f"{result.iteration:,} iterations"]
        if speed := steps or updates:
            unit = "steps" if steps else "updates"
            words.append(f"{progress.speed_text(speed)} {unit} a second")
        best = ""
        if result.best_return is not None:  # The untrained policy is never the best.
            best = f", of the best: {result.best_return:.1f}"
        print(
            f"{'Finished' if result.finished else 'Stopped after'} {', '.join(words)}. "
            f"Mean return of the last evaluation: {result.last_return:.1f}{best}."
        )
    print(f"Outputs: {folder}")
