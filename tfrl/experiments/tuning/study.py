"""Optuna's study of a tuning: draws trials, prunes them, and holds their results."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tfrl.experiments.tuning import search
from tfrl.experiments.tuning.plan import NextRun, Plan, Report, TunedRun
from tfrl.system import files, log

if TYPE_CHECKING:
    import optuna


# The key of the returns of the best trials' settings with other seeds.
_RETURNS = "returns_of_other_seeds"
Run = Callable[[NextRun, Report], None]


def import_optuna() -> Any:
    """Returns Optuna.

    Raises:
      ImportError: It is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise ImportError(
            "tune: got no module 'optuna', which draws the trials; install it with: "
            "pip install 'tfrl[tune]'"
        ) from None
    return optuna


def open_study(
    folder: pathlib.Path, storage: Any, pruner: Any, num_evaluations: int
) -> tuple[optuna.Study, optuna.storages.BaseStorage]:
    """Returns the study of a folder, and its storage; see `tuning.tune`."""
    optuna = import_optuna()
    if storage is None:
        file = folder / "study.log"
        try:
            files.check_plain(file)
            backend = optuna.storages.journal.JournalFileBackend(str(file))
            storage = optuna.storages.JournalStorage(backend)
        except Exception as error:  # Damaged lines may raise anything.
            raise ValueError(
                f"{file}: got a file that is no journal of Optuna's "
                f"({type(error).__name__}: {log.plain(error)}), expected one that a "
                "search has written; restore it from a copy, or give another folder."
            ) from error
    storage = optuna.storages.get_storage(storage)
    if pruner is None:
        # Without a first third, which says little about the end.
        pruner = optuna.pruners.MedianPruner(n_warmup_steps=num_evaluations // 3)
    elif isinstance(pruner, str):
        pruner = find_class("pruner", pruner)()
    study = optuna.create_study(
        storage=storage,
        pruner=pruner,
        study_name=folder.name,
        direction="maximize",
        load_if_exists=True,
    )
    return study, storage


def find_class(argument: str, name: str) -> Any:
    """Returns Optuna's sampler or pruner of a name.

    Args:
      argument: "sampler" or "pruner".
      name: The name of its class.

    Raises:
      ValueError: There is none.
    """
    module = getattr(import_optuna(), f"{argument}s")
    known = [each for each in module.__all__ if each.endswith(argument.title())]
    if name not in known:
        names = ", ".join(sorted(known))
        raise ValueError(f"{argument}: got {name!r}, expected one of {names}.")
    return getattr(module, name)


class TuningStudy:
    """Trials of a study, and the runs with other seeds after them."""

    def __init__(
        self,
        study: optuna.Study,
        sampler: Any,
        plan: Plan,
        folder: pathlib.Path,
        say: Callable[[str], None],
        storage: optuna.storages.BaseStorage | None = None,
    ) -> None:
        """Finds the unfinished trials of a process that died, to train them first.

        Args:
          study: Optuna's study.
          sampler: Optuna's sampler, the name of its class, or None for the study's.
          plan: The settings that the runs share.
          folder: The folder of the tuning.
          say: A function that is called with a line for each trial that ends.
          storage: The study's storage, to continue with trials of a process that died;
            without it, these trials fail.

        Raises:
          ValueError: The study minimizes.
        """
        import optuna

        if study.direction != optuna.study.StudyDirection.MAXIMIZE:
            raise ValueError(
                "study: got one that minimizes, expected direction='maximize', since "
                "values are returns."
            )
        self.study, self._plan, self._say = study, plan, say
        self._searched, self._seed = plan.searched, plan.seed
        self._num_evaluations = plan.num_evaluations
        self._distributions = search.distributions(plan.searched)
        self._folder, self._storage = str(folder.resolve()), storage
        if isinstance(sampler, str):
            from tfrl.experiments.tuning import seeded_sampler

            kind = find_class("sampler", sampler)
            study.sampler = seeded_sampler.SeededSampler(kind, plan.seed)
        elif sampler is not None:
            study.sampler = sampler
        # Other processes may use the same study.
        self._left = [
            trial
            for trial in self._trials("RUNNING")
            if trial.user_attrs.get("folder", self._folder) == self._folder
        ]

    def _trials(self, state: str) -> list[optuna.trial.FrozenTrial]:
        import optuna

        states = (optuna.trial.TrialState[state],)
        found: list[optuna.trial.FrozenTrial] = self.study.get_trials(
            deepcopy=False, states=states
        )
        return found

    def search(self, run: Run, trials: int) -> None:
        """Trains until the study has a number of trials.

        Args:
          run: Trains runs; see `Slots.run`.
          trials: The number of trials.
        """
        run(lambda: self._next(trials), self._report)

    def _next(self, trials: int) -> TunedRun | None:
        """Returns the run of the next trial whose values can be combined."""
        while (trial := self._next_trial(trials)) is not None:
            values = search.values(self._searched, trial.params)
            try:
                self._plan.recipe_of(values)
            except ValueError as error:
                self._fail(trial, str(error))
            else:
                return TunedRun(f"trial_{trial.number}", self._seed, values, trial)
        return None

    def _next_trial(self, trials: int) -> optuna.Trial | None:
        import optuna

        while self._left:
            left = self._left.pop(0)
            if self._storage is None:
                self._fail(left, "its process ended")
            elif left.params.keys() <= self._distributions.keys():
                study = self._storage.get_study_id_from_name(self.study.study_name)
                find = self._storage.get_trial_id_from_study_id_trial_number
                return self._drawn(optuna.Trial(self.study, find(study, left.number)))
            else:
                self._fail(left, "its process searched for other settings")
        number = len(self.study.get_trials(deepcopy=False))
        if number - len(self._trials("WAITING")) >= trials:
            return None
        trial = self.study.ask()
        trial.set_user_attr("folder", self._folder)
        return self._drawn(trial)

    def _drawn(self, trial: optuna.Trial) -> optuna.Trial:
        """Draws the values of a trial that it does not have yet."""
        from tfrl.experiments.tuning import seeded_sampler

        if isinstance(self.study.sampler, seeded_sampler.SeededSampler):
            seeded_sampler.draw_together(trial)
        for name, distribution in self._distributions.items():
            search.draw(trial, name, distribution)
        return trial

    def _fail(
        self, trial: optuna.Trial | optuna.trial.FrozenTrial, reason: str
    ) -> None:
        import optuna

        self.study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        self._say(f"Trial {trial.number} failed: {reason}")

    def _report(self, run: TunedRun, number: int, value: float | None) -> bool:
        """Tells Optuna of an evaluation; returns whether the trial continues."""
        import optuna

        trial, last = run.trial, self._num_evaluations
        if value is None or not math.isfinite(value):
            reason = "it diverged" if value is not None else "see its output.txt"
            self._fail(trial, reason)
            return False
        # A trial of a process that died has reported its first evaluations.
        known = self.study.get_trials(deepcopy=False)[trial.number]
        is_new = number not in known.intermediate_values
        if is_new:
            trial.report(value, number)
        if number == last:
            self.study.tell(trial, value)
            self._say(
                f"Trial {trial.number}: {value:.1f} (best {self.study.best_value:.1f}, "
                f"trial {self.study.best_trial.number}); {words(run.values)}"
            )
        elif is_new and trial.should_prune():
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            self._say(
                f"Trial {trial.number}: pruned at evaluation {number} of {last} with "
                f"{value:.1f}; {words(run.values)}"
            )
            return False
        return number < last

    def repeat(self, run: Run, best: int, seeds: int) -> dict[int, dict[int, float]]:
        """Trains the settings of the best trials with other seeds.

        Returns the last mean return of each run by the trial's number and the seed; NaN
        for a run that failed.

        Args:
          run: Trains runs; see `Slots.run`.
          best: The number of trials.
          seeds: The number of seeds.

        Raises:
          RuntimeError: No trial has finished.
        """
        ended = sorted(self._trials("COMPLETE"), key=lambda trial: -trial.value)
        if not ended:
            raise RuntimeError(
                f"trials: none of {len(self.study.trials)} came to its end, expected "
                "one that did not diverge; the output.txt of a trial in "
                f"{self._folder}/runs says why, or search among smaller rates."
            )
        ended = ended[:best]
        found = dict(self.study.user_attrs.get(_RETURNS, {}))
        wanted = range(self._seed + 1, self._seed + 1 + seeds)

        def missing() -> Iterator[TunedRun]:
            for trial in ended:
                values = search.values(self._searched, trial.params)
                for seed in wanted:
                    name = f"trial_{trial.number}_seed_{seed}"
                    if name not in found:
                        yield TunedRun(name, seed, values)

        def report(run: TunedRun, number: int, value: float | None) -> bool:
            if value is None or not math.isfinite(value):
                value, number = math.nan, self._num_evaluations
            if number == self._num_evaluations:
                found[run.name] = value
                self.study.set_user_attr(_RETURNS, found)
                self._say(f"{run.name}: {value:.1f}")
            return number < self._num_evaluations

        waiting = missing()
        run(lambda: next(waiting, None), report)
        return {
            trial.number: {
                seed: found[f"trial_{trial.number}_seed_{seed}"] for seed in wanted
            }
            for trial in ended
        }


def words(values: Mapping[str, Any]) -> str:
    """Returns the values of fields as text."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
    )
