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
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tfrl import train
from tfrl.algorithms import recipe as recipe_lib
from tfrl.algorithms.settings import COUNT, integer
from tfrl.compilation import processors
from tfrl.experiments import one_program
from tfrl.experiments.tuning import plan as plan_lib
from tfrl.experiments.tuning import processes as processes_lib
from tfrl.experiments.tuning import report
from tfrl.experiments.tuning import search as search_lib
from tfrl.experiments.tuning import slots as slots_lib
from tfrl.experiments.tuning import study as study_lib
from tfrl.system import files, log

if TYPE_CHECKING:
    import optuna

    from tfrl.algorithms.builder import Builder

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
    algorithm: str | type[Builder],
    environment: Any = None,
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
    environment_name: str = "",
    preset: str = "",
    settings: Mapping[str, Any] | None = None,
    progress: bool = True,
    **values: Any,
) -> TuningResult:
    """Searches the settings of an algorithm for an environment; needs `tfrl[tune]`.

    ```python
    found = tfrl.tune(
        tfrl.DQN, "CartPole-v1", trials=32, num_environment_steps=20_000,
        search={"learning_rate": "1e-4..1e-2:log", "gamma": None}, logdir="tuned",
    )
    dqn = tfrl.DQN("CartPole-v1", settings=found.settings).learn()
    ```

    Each trial is a run whose policy is evaluated at even intervals. Optuna's pruner
    ends trials that are worse than others at the same evaluation. The value of a trial
    is its last evaluation's mean return. Called again with the same `logdir`, it
    continues the same trials, even after its process was killed.

    Args:
      algorithm: The class, such as `tfrl.SAC`, or its name.
      environment: The name of an environment, or the `environments.native.Dynamics` of
        your own environment, for trials in one program. None for the algorithm's usual
        one.
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
      environment_name: The environment's name, if `environment` is not a name.
      preset: See `Algorithm`.
      settings: All settings that are not searched; None for the usual ones of the
        environment, changed by `values`.
      progress: Whether to print a line for each trial.
      **values: Settings, see `Algorithm`.

    Raises:
      ImportError: Optuna is not installed.
      ValueError: A setting, a range or a number is wrong.
      RunDirectoryError: The folder belongs to another tuning.
      RuntimeError: No trial has come to its end.
      TypeError: Processes cannot make the environment.
      KeyboardInterrupt: Ctrl-C was pressed; the same call continues.
    """
    kind = recipe_lib.find(algorithm) if isinstance(algorithm, str) else algorithm
    if environment is None:
        environment = kind.environment_name
    # Dynamics are no environment yet.
    given = None if isinstance(environment, str) else lambda: environment
    arguments: dict[str, Any] = {
        "environment_name": environment_name,
        "preset": preset,
        "settings": settings,
    }
    made = kind(given or environment, **arguments, **values)
    growing = {"trials": trials, "best": best, "seeds": seeds}
    numbers = {"trials": trials, "num_evaluations": num_evaluations, "slots": slots}
    for each, number in {**numbers, "seeds": seeds}.items():
        COUNT(each, number, remedy="raise it")
    integer(0)("best", best, remedy="raise it")
    plan = plan_lib.Plan(
        recipe_lib.Recipe.of_algorithm(made),
        num_environment_steps,
        num_evaluations,
        search,
        given,
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
            runner: Any = slots_lib.Slots(plan, environment, number)
            how = "in one program, compiled once"
        else:
            number = processes or processors.number()
            runner = processes_lib.Processes(plan, environment, folder / "runs", number)
            how = f"in processes, since {why}"
        length = plan.recipe_of({}).settings["num_iterations"]
        say(f"{trials} trials of {length:,} iterations: {number} at a time {how}.")
        studied.search(runner.run, trials)
        returns = studied.repeat(runner.run, best, seeds)
        result = _result(plan, study, returns)
        for path, text in (
            ("best.json", json.dumps(result.row, indent=2) + "\n"),
            ("report.md", report.text(study, result.row, plan.searched, returns)),
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
