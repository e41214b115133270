"""The results of many runs: their learning curves, and their final state."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tfrl.eval import statistics
from tfrl.train.loops import collecting_loop
from tfrl.train.runs import run_log, saved_policies


@dataclasses.dataclass(frozen=True)
class SweepResult:
    """The learning curves of `N` runs with `E` evaluations, and their final state.

    The weights of a run that diverged are lost; the other runs continue.

    Attributes:
      seeds: The seed of each run, `[N]`.
      hyperparameters: The values of each hyperparameter, `[N]`, by name.
      iterations: The number of iterations before each evaluation, int64 `[E]`.
      environment_steps: The number of steps before each evaluation, summed over the
        environments of a run, int64 `[N, E]`.
      returns: Mean return of the greedy policy's episodes, float32 `[N, E]`.
      losses: Mean loss since the previous evaluation, float32 `[N, E]`; not finite for
        a run that diverged.
      seconds: The time until each evaluation since the one before, `[E]`; the first one
        of a process includes the compilation.
    """

    seeds: tuple[int, ...]
    hyperparameters: Mapping[str, tuple[float, ...]]
    iterations: np.ndarray
    environment_steps: np.ndarray
    returns: np.ndarray
    losses: np.ndarray
    seconds: np.ndarray
    _loop: collecting_loop.CollectingLoop = dataclasses.field(repr=False)
    _variables: Sequence[tf.Variable] = dataclasses.field(repr=False)
    _final: Sequence[np.ndarray] = dataclasses.field(repr=False)

    def write_csv(self, path: str | pathlib.Path) -> None:
        """Writes a row for each run and evaluation, below the names of the columns.

        The columns are the hyperparameters, seed, iteration, environment_steps, return
        and loss.
        """
        measured = self.environment_steps, self.returns, self.losses
        names = ["seed", "iteration", "environment_steps", "return", "loss"]
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*self.hyperparameters, *names])
            for run, seed in enumerate(self.seeds):
                own = [values[run] for values in self.hyperparameters.values()]
                for column, iteration in enumerate(self.iterations):
                    numbers = [values[run, column] for values in measured]
                    writer.writerow([*own, seed, iteration, *numbers])

    def write_metrics(
        self, run: int, path: str | os.PathLike[str], pace: float
    ) -> None:
        """Writes the curve of run `run` as the metrics.csv of a run by itself.

        Args:
          run: The number of the run.
          path: The file; replaced if it exists.
          pace: The seconds of an iteration, which are its `training_seconds`.
        """
        path = pathlib.Path(path)
        path.unlink(missing_ok=True)
        with contextlib.closing(run_log.MetricsTable(path)) as table:
            for i, iteration in enumerate(self.iterations.tolist()):
                table.write(
                    {
                        "iteration": iteration,
                        "environment_steps": int(self.environment_steps[run, i]),
                        "training_seconds": round(iteration * pace, 3),
                        "loss": float(self.losses[run, i]),
                        "evaluation_return": float(self.returns[run, i]),
                    }
                )

    def plot(self, path: str | pathlib.Path, group_by: str | None = None) -> None:
        """Writes a picture of the learning curves: interquartile means of the runs.

        The bands are 95 % bootstrap intervals; see `eval.statistics`.

        Args:
          path: The path of the picture; its suffix determines the format.
          group_by: The name of a hyperparameter; each of its values gets a curve. None
            draws one curve for all runs.

        Raises:
          ValueError: `group_by` is not one of the hyperparameters.
        """
        from matplotlib.backends import backend_agg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        backend_agg.FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for label, chosen in self._groups(group_by):
            curve = statistics.stratified_bootstrap(
                statistics.pooled_interquartile_mean,
                self.returns[chosen],
                num_resamples=2_000,
            )
            steps = np.median(self.environment_steps[chosen], axis=0)
            (line,) = axes.plot(steps, curve.value, label=label)
            band = axes.fill_between(steps, curve.lower, curve.upper, linewidth=0)
            band.set(color=line.get_color(), alpha=0.2)
        axes.set_xlabel("environment steps")
        axes.set_ylabel("return of the greedy policy")
        axes.set_title("interquartile mean, 95 % interval")
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(path, dpi=150)

    def _groups(self, group_by: str | None) -> list[tuple[str, np.ndarray]]:
        if group_by is None:
            return [(_counted(len(self.seeds)), np.arange(len(self.seeds)))]
        if group_by not in self.hyperparameters:
            raise ValueError(
                f"group_by: got {group_by!r}, expected one of the hyperparameters "
                f"{list(self.hyperparameters)}."
            )
        values = np.asarray(self.hyperparameters[group_by])
        return [
            (
                f"{group_by}={value:g} ({_counted((values == value).sum())})",
                values == value,
            )
            for value in sorted(set(values.tolist()))
        ]

    def pace(self) -> float:
        """Returns the seconds of an iteration of all runs, also of earlier processes.

        It is the lower median over the evaluations, which leaves compilations out.
        """
        paces = self.seconds / np.diff(self.iterations, prepend=0)
        return float(np.quantile(paces, 0.5, method="lower"))

    def restore(self, run: int) -> collecting_loop.CollectingLoop:
        """Returns the loop with the agent, buffer and counters of run `run`.

        All runs share one loop object, so restoring another run changes the loop that
        was returned before. The loop begins a new episode when it is run.
        """
        for variable, values in zip(self._variables, self._final, strict=True):
            variable.assign(values[run])
        items = self._loop.checkpoint_items()
        items["iteration"].assign(int(self.iterations[-1]))
        items["position"].take()
        return self._loop

    def save_policy(self, run: int, path: str | pathlib.Path) -> None:
        """Saves the last greedy policy of run `run` as a SavedModel.

        Like `restore`, it changes the loop that all runs share.

        Args:
          run: The number of the run.
          path: The folder of the policy; replaced if it exists.

        Raises:
          ValueError: The run diverged, so its weights are lost.
        """
        if not np.isfinite(self.losses[run, -1]):
            raise ValueError(
                f"run: got {run}, which diverged: its last loss is "
                f"{self.losses[run, -1]}, expected a run with a finite loss; lower its "
                "learning rate."
            )
        self.restore(run)
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._saved_policies.save(path)

    @functools.cached_property
    def _saved_policies(self) -> saved_policies.SavedPolicies:
        return saved_policies.SavedPolicies(self._loop.agent)


def _counted(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"
