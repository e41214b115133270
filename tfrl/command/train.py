"""`tfrl train ALGORITHM`: trains, and writes the outputs to a folder."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from tfrl import train as train_lib
from tfrl.algorithms import presets, registry
from tfrl.command import (
    config_files,
    errors,
    flag_help,
    interrupts,
    parsing,
    program,
    tracking,
)
from tfrl.experiments import actors, distributed, single
from tfrl.system import interrupts as stop_signals
from tfrl.system import log, threads

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm


def start(algorithm: str | type[Algorithm], text: str) -> None:
    """Trains an algorithm as a program of its own, by the flags in `sys.argv`.

    Args:
      algorithm: The algorithm's name, or its class.
      text: The first text of `--help`.
    """
    interrupts.install()
    threads.set_up()
    kind = registry.find(algorithm) if isinstance(algorithm, str) else algorithm
    main(kind, sys.argv[1:], text)


def main(kind: Any, words: Sequence[str], text: str | None = None) -> None:
    """Trains an algorithm by the flags in some words.

    Args:
      kind: The algorithm's class.
      words: The words after its name.
      text: The first text of `--help`; None for the algorithm's.
    """
    given = define_flags(kind)
    add_actor_flags(given, kind.name)
    program.start(
        given, words, lambda: run(kind, given), lambda: help_text(kind, given, text)
    )


def define_flags(kind: Any) -> flags.FlagValues:
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
        ("quiet", False, "Show only warnings and the last lines."),
    ):
        parsing.add(given, name, default, text)
    tracking.define_flag(given)
    parsing.add_fields(given, kind.setting_fields())
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
    parsing.add_fields(given, actors.ActorSettings.__dataclass_fields__)


def help_text(kind: Any, given: flags.FlagValues, text: str | None = None) -> str:
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
            recipe = make_recipe(kind, given)
    except (TypeError, ValueError) as error:
        errors.exit_with(str(error))
    fields = kind.setting_fields()
    rows = [
        (f"--{field}={value}", fields[field].metadata["text"])
        for field, value in recipe.settings.items()
    ]
    where = given.env or recipe.world.name
    return (
        f"{flag_help.text(first, given, fields)}\n\n"
        f"Settings, {name} for {where}:\n{flag_help.table(rows)}"
    )


def make_recipe(
    kind: Any, given: flags.FlagValues, values: Mapping[str, Any] | None = None
) -> Any:
    """Returns the algorithm that the flags describe, with its folder.

    Args:
      kind: The algorithm's class.
      given: The flags.
      values: Settings in place of those that the flags give.

    Raises:
      ValueError: A setting is wrong, or a file or a preset is for another algorithm.
    """
    config = _config_of(kind, given)
    if given.config and given.preset:
        raise ValueError(
            f"preset: got {given.preset!r}, and the settings of {given.config!r}; give "
            "one of them."
        )
    preset = _preset(kind, given)
    if values is None:
        values = parsing.settings(given, kind)
    environment = given.env or config.get("env") or getattr(preset, "environment", "")
    settings = {x: config[x] for x in config.keys() & kind.setting_fields().keys()}
    recipe = kind(
        environment or kind.environment_name,
        preset=getattr(preset, "name", ""),
        settings=settings if given.config else None,
        initial_run=_initial_run(given, config),
        **values,
    )
    name = kind.name
    if _has_actors(given):
        name += "_actors"
    recipe.write_to(given.logdir or folder_of(name, recipe))
    return recipe


def _config_of(kind: Any, given: flags.FlagValues) -> dict[str, Any]:
    """Returns the fields of the file that --config names; empty without one."""
    return config_files.read(given.config, kind) if given.config else {}


def _has_actors(given: flags.FlagValues) -> bool:
    return "num_actors" in given and bool(given["num_actors"].value)


def _initial_run(given: flags.FlagValues, config: Mapping[str, Any]) -> str | None:
    flag: str | None = given["initial_run"].value if "initial_run" in given else None
    return flag or config.get("initial_run")


def _preset(kind: Any, given: flags.FlagValues) -> presets.Preset | None:
    """Returns the preset that the flags name, or the one for a run with actors."""
    if given.preset:
        return registry.preset_for(kind, given.env or "", given.preset)
    if not _has_actors(given) or given.config:
        return None
    return presets.find_with_actors(kind.name, given.env or kind.environment_name)


def folder_of(name: str, recipe: Any) -> pathlib.Path:
    """Returns the folder of a run, by default a separate one for each seed."""
    words = f"{name}_{recipe.world.name}_{recipe.seed}"
    return pathlib.Path("logs", re.sub(r"[^\w.-]", "-", words))


def steps_of(kind: Any, given: flags.FlagValues) -> int | None:
    """Returns the length in environment steps, if it is given.

    Raises:
      ValueError: A length in iterations is given, too.
    """
    if "num_environment_steps" not in given:
        return None
    steps: int | None = given["num_environment_steps"].value
    if given["num_iterations"].present and steps is not None:
        raise ValueError(
            f"num_environment_steps: got {steps}, and "
            f"{given['num_iterations'].value} num_iterations; give one of them."
        )
    if given["num_iterations"].present:
        return None
    if steps is None:
        steps = _config_of(kind, given).get("num_environment_steps")
    return steps


def options_of(given: flags.FlagValues) -> dict[str, Any]:
    """Returns the arguments of `run_settings.make` that are flags."""
    return {
        "films": given["film"].value,
        "evaluates_untrained": given["evaluate_untrained"].value,
        "shows_progress": not given["quiet"].value,
        "reports": given["report"].value,
        "continue_stopped": given["continue"].value,
    }


def run(kind: Any, given: flags.FlagValues) -> None:
    """Trains, and prints how the run ended."""
    recipe = make_recipe(kind, given)
    steps = steps_of(kind, given)
    if _has_actors(given):
        result = _train_with_actors(recipe, given, steps)
    else:
        tracking.check(given)
        result = single.train(
            recipe,
            steps,
            overwrite=given.overwrite,
            make_loggers=lambda folder: tracking.make_loggers(given, folder),
            **options_of(given),
        )
    report(result, recipe.logdir)


def _train_with_actors(
    recipe: Any, given: flags.FlagValues, steps: int | None
) -> train_lib.RunResult | None:
    """Trains with the actors that the flags describe.

    Raises:
      ValueError: The length is in environment steps, or the run is to be tracked.
    """
    tracking.refuse(given)
    if steps is not None:
        raise ValueError(
            f"num_environment_steps: got {steps} with actors, whose length is a number "
            "of updates; give --num_iterations."
        )
    preset = _preset(type(recipe), given)
    own = {} if preset is None else dict(preset.actors or {})
    fields = actors.ActorSettings.__dataclass_fields__
    names = (
        "num_actors",
        "num_shards",
        "num_learners",
        "evaluator",
        "launcher",
        "address",
        "schedule",
        "overwrite",
    )
    arguments: dict[str, Any] = {name: given[name].value for name in names}
    return distributed.train(
        recipe,
        {**own, **parsing.values(given, fields)},
        **arguments,
        **options_of(given),
    )


def report(result: train_lib.RunResult | None, folder: pathlib.Path) -> None:
    """Prints how a run ended.

    If a signal has interrupted it, the process exits with 128 + the signal's number.

    Args:
      result: The result; None if the run had ended before.
      folder: The folder of its outputs.
    """
    if result is not None and not (result.finished or result.stopped_by):
        sys.exit(stop_signals.exit_status())
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
