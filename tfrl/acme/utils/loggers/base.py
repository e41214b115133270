"""The interfaces of loggers, and of functions that make them."""

from __future__ import annotations

from typing import Any, Protocol

from tfrl.loggers.base import Logger as Logger
from tfrl.loggers.base import LoggingData as LoggingData
from tfrl.loggers.base import NoOpLogger as NoOpLogger
from tfrl.loggers.base import to_numpy as to_numpy

LoggerLabel = str
LoggerStepsKey = str
TaskInstance = int


class LoggerFactory(Protocol):
    """A function that makes the logger of a part of a program."""

    def __call__(
        self,
        label: LoggerLabel,
        steps_key: LoggerStepsKey | None = None,
        instance: TaskInstance | None = None,
    ) -> Logger:
        """Returns the logger.

        Args:
          label: The name of the part.
          steps_key: The name of the count of its steps.
          instance: Which of several such parts it is.
        """


def tensor_to_numpy(value: Any) -> Any:
    """Returns a tensor or variable as an array, and other values unchanged."""
    return to_numpy(value)
