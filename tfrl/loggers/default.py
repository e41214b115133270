"""The logger that components make if no logger is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl.loggers import asynchronous as async_logger
from tfrl.loggers import base, csv, filters, terminal


def make_default_logger(
    label: str,
    save_data: bool = True,
    time_delta: float = 1.0,
    asynchronous: bool = False,
    print_fn: Callable[[str], Any] | None = None,
    serialize_fn: Callable[[base.Values], base.Values] | None = base.to_numpy,
    steps_key: str = "steps",
) -> base.Logger:
    """Returns a logger that prints values and writes them to a CSV file.

    It leaves out values that are None.

    Args:
      label: The start of every line, and the name of the file's directory:
        `~/tfrl/<unique_id>/logs/<label>/logs.csv`.
      save_data: Whether there is a CSV file.
      time_delta: The least number of seconds between two writes that are passed on.
      asynchronous: Whether a separate thread writes; the program waits for this thread
        before it ends.
      print_fn: A function that is called with each line; None takes `print`.
      serialize_fn: A function whose result is written instead of the values.
      steps_key: Has no effect; it is accepted because Acme has this argument, where it
        has no effect either.
    """
    del steps_key
    to: list[base.Logger] = [terminal.TerminalLogger(label, print_fn or print)]
    if save_data:
        to.append(csv.CSVLogger(label=label))
    logger: base.Logger = filters.NoneFilter(filters.Dispatcher(to, serialize_fn))
    if asynchronous:
        logger = filters.AutoCloseLogger(async_logger.AsyncLogger(logger))
    return filters.TimeFilter(logger, time_delta)
