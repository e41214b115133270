"""Searches the settings of an algorithm with Optuna (pip install 'tfrl[tune]').

    tfrl tune sac --env=Pendulum-v1 --trials=64 --num_environment_steps=20000
    tfrl tune dqn --search=learning_rate,gamma --search.final_epsilon=0.01..0.1:log

Each of the --trials is a run with other settings, of which the policy is evaluated
--num_evaluations times. A trial that is worse than the median of the others is pruned:
it ends early (--pruner). The settings of the --best trials are then trained again with
other --seeds, since the best of many trials is partly luck; the best mean wins.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from tfrl.command import parsing, program
from tfrl.command import train as train_command
from tfrl.compilation import processors
from tfrl.experiments.tuning import plan, search, study, tune
from tfrl.system import log, quiet, threads

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def main(kind: type[Builder], words: Sequence[str]) -> None:
    """Tunes an algorithm by the flags in some words, and prints the best settings."""
    parsing.import_suite(words)
    given = _define_flags(kind)
    program.start(given, words, lambda: _run(kind, given), lambda: _help(kind, given))


def _define_flags(kind: type[Builder]) -> flags.FlagValues:
    given = parsing.new(
        env="Gymnasium environment, such as CartPole-v1.",
        logdir="Folder of the search, by default in logs.",
        preset="Settings of another name; see tfrl list settings.",
        config="File of settings: JSON, a run's config.json, or Python.",
        search="Settings to search, with commas; all: all that have a range.",
        storage="URL of Optuna's storage; a file in --logdir.",
    )
    for flag, default, text in (
        ("trials", 64, "Trials in total; a larger number continues a search."),
        ("num_evaluations", 10, "Evaluations of a run, at even intervals."),
        ("seeds", 5, "Number of these seeds."),
        ("slots", 32, "Most runs in one program."),
        ("processes", processors.number(), "Most runs at a time in processes."),
        ("sampler", "TPESampler", "Optuna's class of this name."),
        ("pruner", "MedianPruner", "Optuna's class of this name."),
        ("overwrite", False, "Remove the outputs of an earlier search first."),
        ("quiet", False, "Show only the result."),
    ):
        parsing.add(given, flag, default, text)
    text = "Best trials to train again with other seeds."
    parsing.add(given, "best", 3, text, least=0)
    flags.DEFINE_integer(
        "num_environment_steps",
        None,
        "Length of a run, instead of its iterations.",
        flag_values=given,
    )
    parsing.add_fields(given, kind.run_fields())
    for each in kind.run_fields():
        flags.DEFINE_string(f"search.{each}", None, "Its range.", flag_values=given)
    return given


def _help(kind: type[Builder], given: flags.FlagValues) -> str:
    ranges = [name for name in given if name.startswith("search.")]
    return parsing.help_text(_text(kind), given, [*kind.run_fields(), *ranges])


def _text(kind: type[Builder]) -> str:
    """Returns the text before the flags in the help of an algorithm."""
    name = kind.name
    ranges = "\n".join(
        f"  {field:28}{search.text(each)}{' *' * (field not in kind.live_settings())}"
        for field, each in sorted(kind.search_ranges().items())
    )
    return f"""\
Searches settings of {kind.title} with Optuna (pip install 'tfrl[tune]').

    tfrl tune {name} --env={kind.environment_name} --trials=64

To continue trials that were interrupted or killed, run the same command again. Watch
them with `optuna-dashboard LOGDIR/study.log`.

Ranges, which --search.SETTING=1e-5..1e-2:log, 0.1..0.9 or 32,64,128 change or add.
Without --search, settings with a * are not searched: their trials are processes.
{ranges}"""


def _run(kind: type[Builder], given: flags.FlagValues) -> None:
    recipe = train_command.recipe_of(kind, given)
    steps = recipe.num_environment_steps
    searched = _searched(kind, given)
    # Wrong words show here, before TensorFlow is imported.
    optuna = study.import_optuna()
    plan.Plan(recipe, steps, given.num_evaluations, searched, recipe.environment)
    study.find_class("sampler", given.sampler)
    study.find_class("pruner", given.pruner)
    # Each processor trains its share of the slots in a thread of TensorFlow's; 0 makes
    # as many as there are processors.
    threads.choose(threads.INSIDE_OPERATIONS, "0")
    quiet.quieten_tensorflow()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = train_command.folder_of(given, f"tune_{kind.name}", recipe)
    same = ("trials", "num_evaluations", "best", "seeds", "slots", "processes")
    values: dict[str, Any] = {
        name: given[name].value for name in (*same, "storage", "sampler", "overwrite")
    }
    with program.resumable():
        result = tune.tune(
            recipe.make(),
            num_environment_steps=steps,
            search=searched,
            pruner=given.pruner if given["pruner"].present else None,
            logdir=folder,
            progress=not given.quiet,
            **values,
        )
    log.say(f"Best: {result.row['source']}.")
    log.say(study.words(result.values))
    config = shlex.quote(f"--config={folder}/best.json")
    print(f"tfrl train {kind.name} {config} trains with it.")
    print(f"Outputs: {folder}")


def _searched(kind: type[Builder], given: flags.FlagValues) -> search.Given:
    """Returns the settings that the flags name, with their ranges."""
    ranges = {
        name.removeprefix("search."): given[name].value
        for name in given
        if name.startswith("search.") and given[name].value is not None
    }
    if not ranges:
        found: search.Given = given["search"].value
        return found
    if given["search"].value == "all":
        return {**kind.search_ranges(), **ranges}
    names = given["search"].value.split(",") if given["search"].value else []
    return {**dict.fromkeys(names), **ranges}
