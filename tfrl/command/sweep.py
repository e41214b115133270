"""Trains an algorithm with many seeds and settings, and compares the runs.

    tfrl sweep dqn --env=CartPole-v1 --seeds=0..9
    tfrl sweep ppo --seeds=0..4 --learning_rate=1e-3,3e-3 --processes=2

The runs are one program where possible, and otherwise processes; a line says which, and
why. Settings with several values are combined. The same command resumes a sweep that
was interrupted or killed, and trains only what is missing, such as more --seeds. A
sweep of other settings needs another --logdir.
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from tfrl.algorithms import comparing
from tfrl.command import parsing, program
from tfrl.command import train as train_command
from tfrl.compilation import processors
from tfrl.experiments import children, single, sweeps
from tfrl.system import log, paths, quiet, threads
from tfrl.train.runs import finished_runs, run_files

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def main(kind: type[Builder], words: Sequence[str]) -> None:
    """Trains the runs of an algorithm by the flags in some words, and compares them."""
    parsing.import_suite(words)
    given = train_command.define_flags(kind)
    parsing.allow_several(given, kind.run_fields())
    flags.DEFINE_string("seeds", "0..4", "Seeds, such as 0..9.", flag_values=given)
    most = processors.number()
    parsing.add(given, "processes", most, "Most runs at a time, if in processes.")
    program.start(
        given,
        words,
        lambda: _run(kind, given),
        lambda: train_command.help_text(kind, given, __doc__),
    )


def _run(kind: type[Builder], given: flags.FlagValues) -> None:
    """Trains the runs, and writes and prints their comparison."""
    if given["seed"].present:
        seed = parsing.typed(given)["seed"]
        raise ValueError(f"seed: got {seed}; give --seeds, such as 0..9.")
    seeds = _seeds(given.seeds)
    first = train_command.recipe_of(kind, given)
    single.check_environment(first.make())
    quiet.quieten_tensorflow()
    name = paths.file_name(f"sweep_{kind.name}_{first.environment}")
    folder = pathlib.Path(given.logdir or pathlib.Path("logs", name))
    run_files.check_links(folder)
    swept = parsing.several(given)
    members = []
    for values, seed in itertools.product(itertools.product(*swept.values()), seeds):
        own = dict(zip(swept, values, strict=True))
        label = "_".join([*(f"{k}_{x}" for k, x in own.items()), f"seed_{seed}"])
        place = folder / "runs" / paths.file_name(label)
        settings = {name: swept[name][text] for name, text in own.items()}
        with log.silenced():
            recipe = first.changed(**settings, seed=seed)
        members.append(sweeps.Member(place, recipe))
    # The empty text is the least.
    reason = max(sweeps.why_in_processes(member.recipe) for member in members)
    with sweeps.folder_of(folder, first, swept, members, given.overwrite):
        with program.resumable():
            if reason:
                _train_in_processes(members, reason, given)
            else:
                _train_in_programs(members, folder / "programs")
        runs = [member.folder for member in members]
        runs += [x.parent for x in folder.glob(f"runs/*/{finished_runs.NAME}")]
        compared = comparing.compare(*sorted(runs))
        compared.write(folder, overwrite=True)
    log.say(f"{compared}\nOutputs: {folder}")


def _seeds(text: str) -> list[int]:
    """Returns the seeds of a word such as 0..9 or 1,2,5.

    Raises:
      ValueError: It has another form, or names a seed twice.
    """
    try:
        ends = [[int(end) for end in part.split("..")] for part in text.split(",")]
        found = [seed for part in ends for seed in range(part[0], part[-1] + 1)]
    except ValueError:
        found = []
    if not found or len({*found}) < len(found):
        raise ValueError(
            f"seeds: got {text!r}, expected different numbers; write --seeds=0..9, or "
            "--seeds=1,2,5."
        )
    return found


def _train_in_processes(
    members: Sequence[sweeps.Member], reason: str, given: flags.FlagValues
) -> None:
    most = min(given.processes, len(members))
    print(
        f"{len(members)} runs in processes, {most} at a time, since {reason}. Each "
        "prints to output.txt in its folder.",
        flush=True,
    )
    options = train_command.options_of(given)
    runs = [children.ChildRun(x.folder, x.recipe, options) for x in members]

    def report(number: int, status: int) -> None:
        ending = "ended" if status == 0 else f"ended with status {status}"
        print(f"{runs[number].folder.name}: {ending}", flush=True)

    children.check(runs, children.train_all(runs, most, report))


def _train_in_programs(
    members: Sequence[sweeps.Member], checkpoints: pathlib.Path
) -> None:
    # Each processor trains its share of the runs in a thread of TensorFlow's; 0 makes
    # as many as there are processors.
    threads.choose(threads.INSIDE_OPERATIONS, "0")
    parts, name = sweeps.programs(members), members[0].recipe.environment
    few, why = "one program", ""
    if len(parts) > 1:
        few = f"{len(parts)} programs, one after another"
        why = "; runs of a program differ in seeds and in numbers that it can read"
    print(
        f"{len(members)} runs in {few}, since {name} is written in TensorFlow{why}.",
        flush=True,
    )
    for part in parts:
        sweeps.train_in_one_program(part, checkpoints)
