"""`RunView`, further numbers of a run, for example of other processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class RunView(Protocol):
    """Further numbers and text for the log and the progress line of a `train.Run`."""

    def measure(self) -> Mapping[str, float]:
        """Returns the further columns of a row of metrics.csv, always the same ones.

        NaN counts as not measured. If TensorBoard and the loggers get a column of the
        same name from the loop, such as `steps_per_second`, this one replaces it.
        """

    def words(self) -> Sequence[str]:
        """Returns the progress line's text; called after each call of the loop."""
