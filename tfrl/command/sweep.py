"""Trains an algorithm with many seeds and settings, and compares the runs.

    tfrl sweep dqn --env=CartPole-v1 --seeds=0..9
    tfrl sweep ppo --seeds=0..4 --config.learning_rate=1e-3,3e-3 --processes=2

The runs are one program where possible, and otherwise processes; a line says which, and
why. Settings with several values are combined. The same command resumes a sweep that
was interrupted or killed, and trains only what is missing, such as more --seeds.
"""

from __future__ import annotations

import ast
import copy
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from tfrl.algorithms import child_runs, comparing, sweeps
from tfrl.algorithms.algorithm import least_iterations
from tfrl.command import cli, runs
from tfrl.system import interrupts, quiet

_SETTING = re.compile(r"--?config\.(\w+)=(.*)", re.DOTALL)
_PASSED_ON = ("evaluate_untrained", "film", "overwrite", "quiet")  # To processes.
# A value up to a comma outside of parentheses, which may hold others.
_VALUE = re.compile(r"(?:\((?:[^()]|\([^()]*\))*\)|[^,()])+")


def take_values(words: list[str]) -> dict[str, list[str]]:
    """Returns the values of each setting that has several; leaves the first in `words`.

    Args:
      words: The command line, such as `["--config.gamma=0.9,0.99"]`, which becomes
        `["--config.gamma=0.9"]`.
    """
    found = {}
    for i, word in enumerate(words):
        setting = _SETTING.fullmatch(word)
        values = _VALUE.findall(setting[2]) if setting else []
        if setting and len(values) > 1:
            found[setting[1]] = values
            words[i] = f"--config.{setting[1]}={values[0]}"
    return found


def define_flags(name: str) -> Any:
    """Defines the flags of this command; returns the flag of the configuration."""
    config = runs.define_config(f"{name}+")
    flags.DEFINE_string("seeds", "0..4", "Seeds, such as 0..9 or 1,2,5.")
    flags.DEFINE_integer(
        "processes",
        child_runs.num_processors(),
        "Most runs at a time, if they are processes.",
        lower_bound=1,
    )
    return config


def main(flag: Any, swept: dict[str, list[str]]) -> None:
    """Trains the runs, and writes and prints their comparison.

    Args:
      flag: The flag that `define_flags` returned.
      swept: The values of each setting that has several.
    """
    config = cli.read_config(flag)
    if flags.FLAGS.seed is not None:
        raise ValueError(f"seed: got {flags.FLAGS.seed}; give --seeds, such as 0..9.")
    cli.check_environment(config)
    quiet.quieten_tensorflow()
    name = re.sub(r"[^\w.-]", "-", f"sweep_{config.agent}_{config.env}")
    folder = pathlib.Path(flags.FLAGS.logdir or pathlib.Path("logs", name))
    members = []
    seeds = _seeds(flags.FLAGS.seeds)
    for values, seed in itertools.product(itertools.product(*swept.values()), seeds):
        own = dict(zip(swept, values, strict=True))
        label = "_".join([*(f"{k}_{x}" for k, x in own.items()), f"seed_{seed}"])
        place = folder / "runs" / re.sub(r"[^\w.-]", "-", label)
        members.append(sweeps.Member(place, _with(config, own, seed)))
    # The empty text is the least.
    reason = max(sweeps.why_in_processes(member.config) for member in members)
    try:
        if reason:
            _train_in_processes(members, reason)
        else:
            _train_in_programs(members, folder / "programs")
    except (KeyboardInterrupt, interrupts.Terminated):
        print("Interrupted. Run the same command again to resume.")
        sys.exit(interrupts.exit_status())
    compared = comparing.compare(*(member.folder for member in members))
    compared.write(folder)
    print(f"{compared}\nOutputs: {folder}")


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


def _with(config: Any, values: dict[str, str], seed: int) -> Any:
    """Returns the configuration with other values of some settings, checked."""
    own = copy.deepcopy(config)
    own.seed = seed
    for name, text in values.items():
        try:
            value = ast.literal_eval(text)
        except (SyntaxError, ValueError):
            value = text
        own[name] = float(value) if isinstance(own[name], float) else value
    cli.check(own)
    if "num_environment_steps" in own:
        own.num_iterations = least_iterations(own, own.num_environment_steps)
    return own


def _train_in_processes(members: Sequence[sweeps.Member], reason: str) -> None:
    most = min(flags.FLAGS.processes, len(members))
    print(
        f"{len(members)} runs in processes, {most} at a time, since {reason}. Each "
        "prints to output.txt in its folder.",
        flush=True,
    )
    given = [f"--{name}={flags.FLAGS[name].value}" for name in _PASSED_ON]
    children = [
        child_runs.ChildRun(x.folder, [*child_runs.command(x.config), *given])
        for x in members
    ]

    def report(number: int, status: int) -> None:
        ending = "ended" if status == 0 else f"ended with status {status}"
        print(f"{children[number].folder.name}: {ending}", flush=True)

    child_runs.check(children, child_runs.train_all(children, most, report))


def _train_in_programs(
    members: Sequence[sweeps.Member], checkpoints: pathlib.Path
) -> None:
    # Each processor trains its share of the runs in a thread of TensorFlow's; 0 makes
    # as many as there are processors.
    os.environ["TF_NUM_INTRAOP_THREADS"] = "0"
    parts = sweeps.programs(members)
    few, why = "one program", ""
    if len(parts) > 1:
        few = f"{len(parts)} programs, one after another"
        why = "; runs of a program differ in seeds and in numbers that it can read"
    print(
        f"{len(members)} runs in {few}, since {members[0].config['env']} is written in "
        f"TensorFlow{why}.",
        flush=True,
    )
    for part in parts:
        sweeps.train_in_one_program(part, checkpoints, flags.FLAGS.overwrite)
