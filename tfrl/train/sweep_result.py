"""The result of a sweep, with the learning curves and the final state of all runs."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tfrl.train import loop


@dataclasses.dataclass(frozen=True)
class SweepResult:
    """The result of a sweep of `N` runs with `E` evaluations.

    Attributes:
      seeds: The seed of each run, `[N]`.
      hyperparameters: The values of each hyperparameter, `[N]`, by name.
      iterations: The number of iterations before each evaluation, int64 `[E]`.
      environment_steps: The number of steps before each evaluation, summed over the
        environments of a run, int64 `[N, E]`.
      returns: Mean return of the greedy policy's episodes, float32 `[N, E]`.
      losses: Mean loss since the previous evaluation, float32 `[N, E]`; not finite for
        a run that diverged, whose weights are lost then. The other runs continue.
    """

    seeds: tuple[int, ...]
    hyperparameters: Mapping[str, tuple[float, ...]]
    iterations: np.ndarray
    environment_steps: np.ndarray
    returns: np.ndarray
    losses: np.ndarray
    _loop: loop.Loop = dataclasses.field(repr=False)
    _variables: Sequence[tf.Variable] = dataclasses.field(repr=False)
    _final: Sequence[np.ndarray] = dataclasses.field(repr=False)

    def restore(self, run: int) -> loop.Loop:
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

    def plot(self, path: str | pathlib.Path, group_by: str | None = None) -> None:
        """Writes a picture of the learning curves: median and quartiles of the runs.

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
            low, median, high = np.quantile(
                self.returns[chosen], (0.25, 0.5, 0.75), axis=0
            )
            steps = np.median(self.environment_steps[chosen], axis=0)
            (line,) = axes.plot(steps, median, label=label)
            axes.fill_between(steps, low, high, alpha=0.25, color=line.get_color())
        axes.set_xlabel("environment steps")
        axes.set_ylabel("return of the greedy policy")
        axes.set_title("median and quartiles")
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


def _counted(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"
