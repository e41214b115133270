"""A sampler of Optuna whose draws a kill does not change. Imports Optuna at the top."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import optuna

# The user attribute of a trial with the values that were drawn together.
_TOGETHER = "drawn_together"


class SeededSampler(optuna.samplers.BaseSampler):
    """Draws each value by a new sampler, seeded by the trial's number and the name.

    A value then depends on the seed, the trial and the trials that have ended, and not
    on the values that this process has drawn before. A sampler may also draw values
    together, when the first of them is wanted; `draw_together` stores them first.

    Attributes:
      kind: The class of the sampler.
    """

    def __init__(self, kind: type[optuna.samplers.BaseSampler], seed: int) -> None:
        """Stores the class, which is called with `seed`."""
        self.kind = kind
        self._seed = seed

    def before_trial(self, study: optuna.Study, trial: Any) -> None:
        """Prepares a trial, which may be one that a killed process has begun."""
        self._of(trial).before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: Any) -> Any:
        """Returns the distributions of the values to draw together."""
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: Any, search_space: Any
    ) -> dict[str, Any]:
        """Draws values together, unless the trial has them already."""
        if _TOGETHER in trial.user_attrs:
            return {
                name: value
                for name, value in trial.user_attrs[_TOGETHER].items()
                if name in search_space
            }
        found: dict[str, Any] = self._of(trial).sample_relative(
            study, trial, search_space
        )
        return found

    def sample_independent(
        self,
        study: optuna.Study,
        trial: Any,
        param_name: str,
        param_distribution: optuna.distributions.BaseDistribution,
    ) -> Any:
        """Draws a value by itself."""
        sampler = self._of(trial, param_name)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: Any,
        state: optuna.trial.TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Tells the sampler of a trial that has ended."""
        self._of(trial).after_trial(study, trial, state, values)

    def _of(self, trial: Any, name: str = "") -> Any:
        """Returns the sampler of a trial, or of a value of it."""
        text = f"{self._seed} {trial.number} {name}"
        return self.kind(seed=zlib.crc32(text.encode()))


def draw_together(trial: optuna.Trial) -> None:
    """Stores the values of a new trial that are drawn together, before any is used.

    QMC counts its draws in the study, and would draw the next point after a kill.
    """
    if _TOGETHER not in trial.user_attrs:
        trial.set_user_attr(_TOGETHER, dict(trial.relative_params))
