"""`FrozenLearner`: a learner that no longer learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfrl.acme import core


class FrozenLearner(core.Learner):
    """Provides the variables of a learner without calling its `step`."""

    def __init__(
        self, learner: core.Learner, step_fn: Callable[[], Any] | None = None
    ) -> None:
        """Creates the learner.

        Args:
          learner: The learner to freeze.
          step_fn: Called in each step, for example to drop a batch; None does nothing.
        """
        self._learner = learner
        self._step_fn = step_fn

    def step(self) -> None:
        """Calls `step_fn`."""
        if self._step_fn is not None:
            self._step_fn()

    def get_variables(self, names: Sequence[str]) -> list[Any]:
        """Returns the learner's variables; see `VariableSource`."""
        return self._learner.get_variables(names)

    def save(self) -> Any:
        """Returns the learner's state."""
        return self._learner.save()

    def restore(self, state: Any) -> None:
        """Restores the learner's state."""
        self._learner.restore(state)
