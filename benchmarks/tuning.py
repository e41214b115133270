"""Measures tuning in one program beside the same trials one after another, on one core.

    python -m benchmarks.tuning
    python -m benchmarks.tuning sac --trials=16 --num_environment_steps=5000

One program has a slot for each trial, and no trial is pruned. The same trials are then
trained by `tfrl train`, a command for each, and by a loop for each that is compiled in
one process. With --commands and --loops fewer of them are trained, and their time is
multiplied. Processor time counts where other programs run.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from benchmarks import check_command

_ENVIRONMENTS = {"dqn": "CartPole-v1", "sac": "Pendulum-v1"}
_EVALUATIONS = 10


class Seconds(NamedTuple):
    """How long something took: by the clock, and of processors."""

    wall: float
    processor: float


def main() -> None:
    """Measures, and prints a table."""
    given = _parse()
    core = min(os.sched_getaffinity(0))
    # The children inherit it.
    os.sched_setaffinity(0, {core})
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        together = _measure(
            *["tfrl", "tune", given.algorithm, "--quiet", "--pruner=NopPruner"],
            *[f"--trials={given.trials}", f"--slots={given.trials}", "--best=0"],
            *[f"--env={_ENVIRONMENTS[given.algorithm]}", f"--logdir={place / 'one'}"],
            f"--num_environment_steps={given.num_environment_steps}",
            f"--num_evaluations={_EVALUATIONS}",
        )
        rows = _rows(place)
        commands = _scaled(
            [_command(rows[i], place / str(i)) for i in range(given.commands)],
            given.trials,
        )
        own = place / "rows.json"
        own.write_text(json.dumps(rows[: given.loops]), encoding="utf-8")
        loops = _scaled(
            [_measure("benchmarks.tuning", f"--rows={own}")],
            given.trials / given.loops,
        )
    print(f"| {given.trials} trials of {given.algorithm} | wall, s | processor, s |")
    print("| --- | --- | --- |")
    for name, seconds in (
        ("one program", together),
        (f"commands ({given.commands} measured)", commands),
        (f"loops compiled in one process ({given.loops} measured)", loops),
    ):
        print(f"| {name} | {seconds.wall:.0f} | {seconds.processor:.0f} |")
    for name, other in (("commands", commands), ("loops", loops)):
        print(
            f"One program takes {together.wall / other.wall:.2f} of the wall time of "
            f"{name}, and {together.processor / other.processor:.2f} of their "
            "processor time."
        )


def _parse() -> argparse.Namespace:
    parser = check_command.parser("benchmarks.tuning", __doc__)
    parser.add_argument("algorithm", nargs="?", default="dqn", choices=_ENVIRONMENTS)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--num_environment_steps", type=int, default=20_000)
    parser.add_argument("--commands", type=int, default=32, help="to measure")
    parser.add_argument("--loops", type=int, default=32, help="to measure")
    parser.add_argument("--rows", help="trains the loops of these settings, and ends")
    given = parser.parse_args()
    given.commands = min(given.commands, given.trials)
    given.loops = min(given.loops, given.trials)
    if given.rows:
        _train_loops(pathlib.Path(given.rows))
        sys.exit()
    return given


def _measure(module: str, *words: str) -> Seconds:
    """Runs a command, and returns how long it took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", module, *words],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wall, now = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(wall, now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime)


def _scaled(measured: list[Seconds], number: float) -> Seconds:
    """Returns the time of so many as were measured together."""
    walls, processors = zip(*measured, strict=True)
    scale = number / len(measured)
    return Seconds(sum(walls) * scale, sum(processors) * scale)


def _rows(place: pathlib.Path) -> list[dict]:
    """Returns the settings of each trial, as rows that --config takes."""
    import optuna

    from tfrl.algorithms.recipe import Recipe
    from tfrl.experiments.tuning import plan as plan_lib
    from tfrl.train.runs import run_files

    backend = optuna.storages.journal.JournalFileBackend(str(place / "one/study.log"))
    study = optuna.load_study(
        study_name="one", storage=optuna.storages.JournalStorage(backend)
    )
    config = run_files.read_config(place / "one" / "config.json")
    plan = plan_lib.Plan(
        Recipe.from_json(config),
        config["num_environment_steps"],
        _EVALUATIONS,
        None,
        config["env"],
    )
    recipes = [plan.recipe_of(trial.params, config["seed"]) for trial in study.trials]
    return [plan.row(dict(each.settings), "a trial") for each in recipes]


def _command(row: dict, folder: pathlib.Path) -> Seconds:
    """Trains a trial's settings by a command."""
    folder.mkdir()
    path = folder / "settings.json"
    path.write_text(json.dumps(row), encoding="utf-8")
    return _measure(
        *["tfrl", "train", row["algorithm"], f"--config={path}", "--nofilm", "--quiet"],
        *["--noevaluate_untrained", f"--logdir={folder}"],
    )


def _train_loops(path: pathlib.Path) -> None:
    """Trains a compiled loop for each of some settings, with their evaluations."""
    from tfrl import environments
    from tfrl import eval as evaluation
    from tfrl.algorithms import registry

    for row in json.loads(path.read_text(encoding="utf-8")):
        load, name = environments.native.load, row["environment"]
        s: Any = registry.find(row["algorithm"])(name, settings=row["settings"])
        environment = load(name, s.num_envs, s.seed)
        algorithm = type(s)(environment, settings=s.settings)
        loop = algorithm.build()
        others = load(name, s.num_eval_episodes, 1)
        evaluator = evaluation.Evaluator(
            others, algorithm.policy, s.num_eval_episodes, s.seed
        )
        for _ in range(_EVALUATIONS):
            loop.run(s.eval_interval)
            evaluator.run()


if __name__ == "__main__":
    main()
