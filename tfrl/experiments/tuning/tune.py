"""Tuning: Optuna draws settings, and runs of an algorithm measure them.

Trials that differ only in numbers that the program reads are trained together in one
program, others in processes. The best are trained again with other seeds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import statistics
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl import train
from tfrl.algorithms import recipe as recipe_lib
from tfrl.algorithms import registry, run_folders
from tfrl.algorithms.settings import COUNT, integer
from tfrl.compilation import processors
from tfrl.experiments import one_program
from tfrl.experiments.tuning import plan as plan_lib
from tfrl.experiments.tuning import runners
from tfrl.experiments.tuning import search as search_lib
from tfrl.experiments.tuning import study as study_lib
from tfrl.system import files, log

if TYPE_CHECKING:
    import optuna

    from tfrl.algorithms.builder import Builder

_MOST = 20  # Trials in the table.
_OUTPUTS = ("study.log", "best.json", "report.md")


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """What tuning has found.

    Attributes:
      study: Optuna's study, with all trials.
      row: The best settings, as the fields of a preset; best.json in the folder.
      settings: The best settings.
      values: The values among them that were searched, by field.
      returns: The mean return of the last evaluation of each of the best trials'
        settings, by the number of the trial and then by the seed.
    """

    study: optuna.Study
    row: dict[str, Any]
    settings: dict[str, Any]
    values: dict[str, Any]
    returns: dict[int, dict[int, float]]


def tune(
    algorithm: str | type[Builder] | Builder,
    *,
    trials: int = 64,
    num_environment_steps: int | None = None,
    search: search_lib.Given = None,
    study: optuna.Study | None = None,
    storage: Any = None,
    sampler: Any = None,
    pruner: Any = None,
    num_evaluations: int = 10,
    best: int = 3,
    seeds: int = 5,
    slots: int = 32,
    processes: int | None = None,
    logdir: str | pathlib.Path | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> TuningResult:
    """Searches the settings of an algorithm for an environment; needs `tfrl[tune]`.

    ```python
    found = tfrl.tune(
        tfrl.DQN("CartPole-v1"), trials=32, num_environment_steps=20_000,
        search={"learning_rate": "1e-4..1e-2:log", "gamma": None}, logdir="tuned",
    )
    dqn = tfrl.DQN("CartPole-v1", settings=found.settings).learn()
    ```

    Each trial is a run whose policy is evaluated at even intervals. Optuna's pruner
    ends trials that are worse than others at the same evaluation. The value of a trial
    is its last evaluation's mean return. Called again with the same `logdir`, it
    continues the same trials, even after its process was killed.

    Args:
      algorithm: The algorithm, such as `tfrl.SAC("Pendulum-v1", batch_size=64)`, with
        the settings that are not searched; or its class or name, for its usual
        environment. For trials in one program its environment may be a
        `environments.native.Dynamics` of your own.
      trials: The number of trials.
      num_environment_steps: The steps of a run, rounded up so that evaluations are
        evenly spaced; None for the length that the settings give.
      search: Which fields to search, and where; see `search.fields`.
      study: Optuna's study that gets the trials; None for one in `storage`.
      storage: Optuna's storage, or its URL; None for study.log in `logdir`.
      sampler: Optuna's sampler, or the name of its class; None for "TPESampler". A
        sampler that is given by its name draws the same trials after a kill.
      pruner: Optuna's pruner, or the name of its class; None for its `MedianPruner`,
        which ends no trial in the first third of its evaluations.
      num_evaluations: The number of evaluations of a run.
      best: The number of the best trials to train again with other seeds; with 0 the
        trial with the largest value is the best.
      seeds: The number of these seeds.
      slots: The largest number of runs in one program.
      processes: The largest number of processes at a time, if runs are in processes;
        None for as many as there are processors.
      logdir: The folder of all outputs; None keeps none.
      overwrite: Whether to remove the outputs of an earlier tuning first.
      progress: Whether to print a line for each trial.

    Raises:
      ImportError: Optuna is not installed.
      ValueError: A setting, a range or a number is wrong.
      RunDirectoryError: The folder belongs to another tuning.
      RuntimeError: No trial has come to its end.
      TypeError: Processes cannot make the environment.
      KeyboardInterrupt: Ctrl-C was pressed; the same call continues.
    """
    kind = registry.find(algorithm) if isinstance(algorithm, str) else algorithm
    made = kind() if isinstance(kind, type) else kind
    environment = made.own_environment
    environment = made.environment_name if environment is None else environment
    growing = {"trials": trials, "best": best, "seeds": seeds}
    numbers = {"trials": trials, "num_evaluations": num_evaluations, "slots": slots}
    for each, number in {**numbers, "seeds": seeds}.items():
        COUNT(each, number, remedy="raise it")
    integer(0)("best", best, remedy="raise it")
    recipe = recipe_lib.Recipe.of_algorithm(made)
    plan = plan_lib.Plan(
        recipe, num_environment_steps, num_evaluations, search, environment
    )
    with contextlib.ExitStack() as stack:
        if logdir is None:
            logdir = stack.enter_context(tempfile.TemporaryDirectory())
            storage = storage or study_lib.import_optuna().storages.InMemoryStorage()
        directory = train.RunDirectory(
            logdir,
            {**plan.fields(), **growing},
            overwrite,
            may_grow=[*growing],
            further_outputs=_OUTPUTS,
            absent=run_folders.defaults_of(plan.fields()),
        )
        directory.lock()
        stack.callback(directory.unlock)
        directory.grow()
        folder = directory.path
        opened = None
        if study is None:
            study, opened = study_lib.open_study(
                folder, storage, pruner, num_evaluations
            )
            sampler = sampler or "TPESampler"
        say = log.info if progress else lambda _: None
        studied = study_lib.TuningStudy(study, sampler, plan, folder, say, opened)
        why = one_program.obstacle(made, environment, plan.searched)
        if not why:
            number = min(slots, trials)
            run = runners.Slots(plan, environment, number).run
            how = "in one program, compiled once"
        else:
            number = processes or processors.number()
            run = runners.Processes(plan, environment, folder / "runs", number).run
            how = f"in processes, since {why}"
        length = plan.recipe_of({}).settings["num_iterations"]
        say(f"{trials} trials of {length:,} iterations: {number} at a time {how}.")
        studied.search(run, trials)
        returns = studied.repeat(run, best, seeds)
        result = _result(plan, study, returns)
        for path, text in (
            ("best.json", json.dumps(result.row, indent=2) + "\n"),
            ("report.md", report_text(study, result.row, plan.searched, returns)),
        ):
            files.write_text(folder / path, text)
    return result


def _result(
    plan: plan_lib.Plan, study: optuna.Study, returns: dict[int, dict[int, float]]
) -> TuningResult:
    """Returns the settings whose mean return over the other seeds is largest."""

    def mean(number: int) -> float:
        return statistics.mean(returns[number].values())

    # NaN counts as the smallest mean.
    number = max(
        returns,
        key=lambda n: (mean(n) == mean(n), mean(n)),
        default=study.best_trial.number,
    )
    values = search_lib.values(plan.searched, study.trials[number].params)
    iterations = plan.recipe_of(values).settings["num_iterations"]
    settings = {**plan.recipe.settings, **values, "num_iterations": iterations}
    source = f"trial {number} of {len(study.trials)} by tfrl tune, mean return "
    if returns:
        source += f"{mean(number):.1f} over {len(returns[number])} seeds"
    else:
        source += f"{study.best_value:.1f}"
    defaults = {**plan.recipe.algorithm.defaults(), "seed": settings["seed"]}
    changed = {k: v for k, v in settings.items() if v != defaults[k]}
    return TuningResult(study, plan.row(changed, source), settings, values, returns)


def report_text(
    study: optuna.Study,
    row: Mapping[str, Any],
    searched: Mapping[str, Any],
    returns: Mapping[int, Mapping[int, float]],
) -> str:
    """Returns the report.

    Args:
      study: Optuna's study.
      row: The best settings, as the fields of a `presets.Preset`.
      searched: The range of each field.
      returns: The last mean return with other seeds, by trial and seed.
    """
    trials = study.get_trials(deepcopy=False)
    states = [trial.state.name.lower() for trial in trials]
    counts = ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
    importance = _importance(study)
    fields = [
        (name, search_lib.text(each), importance.get(name, ""))
        for name, each in searched.items()
    ]
    ended = [trial for trial in trials if trial.state.name == "COMPLETE"]
    best = []
    for trial in sorted(ended, key=lambda trial: -trial.value)[:_MOST]:
        others = list(returns.get(trial.number, {}).values())
        mean = statistics.mean(others) if others else ""
        drawn = [trial.params[name] for name in searched]
        best.append((trial.number, trial.value, mean, *drawn))
    return "\n".join(
        [
            f"# {row['algorithm']} on {row['environment']}\n",
            f"{row['source'].capitalize()}. {len(trials)} trials: {counts}.\n",
            *_table(("field", "range", "importance"), fields),
            "\nThe best trials, with their mean return over other seeds:\n",
            *_table(("trial", "return", "other seeds", *searched), best),
            "",
        ]
    )


def _importance(study: optuna.Study) -> dict[str, float]:
    """Returns Optuna's importance of each field; none if it cannot say."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found: dict[str, float] = optuna.importance.get_param_importances(study)
            return found
        except (ValueError, RuntimeError):  # Too few trials.
            return {}


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    short = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in rows
    ]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *short)]
