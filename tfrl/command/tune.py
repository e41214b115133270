"""Searches the settings of an algorithm with Optuna."""

from __future__ import annotations

import os
from typing import Any

from absl import flags

from tfrl.algorithms import child_runs, registry
from tfrl.algorithms.settings import Settings
from tfrl.algorithms.tuning import plan, search, study, tune
from tfrl.command import cli
from tfrl.system import quiet


def define_config(name: str) -> cli.Config:
    """Defines the flags of this command; returns the flag of the settings.

    Args:
      name: The algorithm's name.
    """
    config = cli.define_config(f"{name}+")
    flags.DEFINE_integer(
        "num_environment_steps", None, "Length of a run, instead of its iterations."
    )
    for flag, default, text in (
        ("trials", 64, "Trials in total; a larger number continues a search."),
        ("num_evaluations", 10, "Evaluations of a run, at even intervals."),
        ("seeds", 5, "Number of these seeds."),
        ("slots", 32, "Most runs in one program."),
        ("processes", child_runs.num_processors(), "Most runs at a time in processes."),
    ):
        flags.DEFINE_integer(flag, default, text, lower_bound=1)
    flags.DEFINE_integer(
        "best", 3, "Best trials to train again with other seeds.", lower_bound=0
    )
    flags.DEFINE_string(
        "search", None, "Fields to search, with commas; all: all that have a range."
    )
    flags.DEFINE_string("sampler", "TPESampler", "Optuna's class of this name.")
    flags.DEFINE_string("pruner", "MedianPruner", "Optuna's class of this name.")
    flags.DEFINE_string("storage", None, "URL of Optuna's storage; a file in --logdir.")
    flags.DEFINE_bool("quiet", False, "Show only the result.")
    for field in registry.find(name).Settings.texts():
        flags.DEFINE_string(f"search.{field}", None, "Its range.")
    return config


def text(name: str) -> str:
    """Returns the text before the flags in the help of an algorithm."""
    kind = registry.find(name)
    ranges = "\n".join(
        f"  {field:28}{search.text(each)}{' *' * (field not in kind.Settings.live())}"
        for field, each in sorted(kind.Settings.search_ranges().items())
    )
    return f"""\
Searches settings of {kind.title} with Optuna (pip install 'tfrl[tune]').

    tfrl tune {name} --env={kind.environment_name} --trials=64

To continue trials that were interrupted or killed, run the same command again. Watch
them with `optuna-dashboard LOGDIR/study.log`.

Ranges, which --search.FIELD=1e-5..1e-2:log, 0.1..0.9 or 32,64,128 change or add.
Without --search, fields with a * are not searched: their trials cannot be one program.
{ranges}"""


def main(config: cli.Config) -> None:
    """Tunes, and prints the best settings.

    Args:
      config: The configuration, as `cli.read_config` returns it.
    """
    given = flags.FLAGS
    kind = registry.find(config.agent)
    settings = kind.Settings.of(config)
    steps = config.get("num_environment_steps")
    searched = _searched(kind.Settings)
    # Wrong words show here, before TensorFlow is imported.
    optuna = study.import_optuna()
    plan.Plan(kind, config.env, settings, steps, given.num_evaluations, searched)
    study.find_class("sampler", given.sampler)
    study.find_class("pruner", given.pruner)
    # Each processor trains its share of the slots in a thread of TensorFlow's; 0 makes
    # as many as there are processors.
    os.environ["TF_NUM_INTRAOP_THREADS"] = "0"
    quiet.quieten_tensorflow()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = cli.folder_of(f"tune_{config.agent}", config)
    pruner = None if given["pruner"].using_default_value else given.pruner
    same = ("trials", "num_evaluations", "best", "seeds", "slots", "processes")
    values: dict[str, Any] = {
        name: given[name].value for name in (*same, "storage", "sampler", "overwrite")
    }
    result = tune.tune(
        kind,
        config.env,
        num_environment_steps=steps,
        search=searched,
        pruner=pruner,
        logdir=folder,
        settings=settings,
        progress=not given.quiet,
        **values,
    )
    print(f"Best: {result.row['source']}.")
    print(study.words(result.values))
    print(f"tfrl train {config.agent} --config={folder / 'best.json'} trains with it.")
    print(f"Outputs: {folder}")


def _searched(kind: type[Settings]) -> search.Given:
    """Returns the fields that the flags name, with their ranges."""
    given = flags.FLAGS
    ranges = {
        name.removeprefix("search."): given[name].value
        for name in given
        if name.startswith("search.") and given[name].value is not None
    }
    if not ranges:
        return given.search
    if given.search == "all":
        return {**kind.search_ranges(), **ranges}
    names = given.search.split(",") if given.search else []
    return {**dict.fromkeys(names), **ranges}
