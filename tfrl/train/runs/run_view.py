"""`RunView`: numbers of a run beyond those of its loop, such as of other processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class RunView(Protocol):
    """What `train.Run` shows in its log and on its progress line."""

    def measure(self) -> Mapping[str, float]:
        """Returns the further columns of a row of metrics.csv, always the same ones.

        NaN counts as not measured. A column that TensorBoard and the loggers have of
        the loop, such as `steps_per_second`, replaces that there.
        """

    def words(self) -> Sequence[str]:
        """Returns what the progress line says; called after each call of the loop."""
