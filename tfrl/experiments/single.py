"""Trains the run of an algorithm in its folder, as a command does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from absl import logging as absl_logging

from tfrl import loggers as loggers_lib
from tfrl import train as train_lib
from tfrl.system import log, portable, quiet, threads
from tfrl.train.runs import finished_runs, stopped_runs

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm


def train(
    algorithm: Algorithm,
    *,
    overwrite: bool = False,
    continue_stopped: bool = False,
    make_loggers: Callable[
        [train_lib.RunDirectory], Sequence[loggers_lib.Logger]
    ] = lambda _: (),
    **options: Any,
) -> train_lib.RunResult | None:
    """Trains to the end of a run, or resumes it.

    A run that has ended, or that a callback has stopped, is found without TensorFlow.

    Args:
      algorithm: The algorithm, with a `logdir` and without parts.
      overwrite: Whether to remove the outputs of an earlier run first.
      continue_stopped: Whether a run that a callback has stopped continues.
      make_loggers: Returns further loggers for the run in a folder.
      **options: Further arguments of `Algorithm.run`.

    Returns:
      The result; None if the run had ended already.

    Raises:
      RunDirectoryError: The folder belongs to another run.
      ValueError: There is no such environment, or the algorithm does not choose its
        actions.
    """
    ended = ending(
        algorithm,
        algorithm.open_folder,
        is_new=overwrite,
        continues=continue_stopped,
    )
    if ended:
        log.info(ended)
        return None
    check_environment(algorithm)
    prepare_kernels(algorithm)
    assert algorithm.logdir is not None
    is_new = not algorithm.logdir.exists()
    directory = algorithm.open_folder(overwrite=overwrite)
    # Until the process ends, no other one may train there.
    directory.lock()
    try:
        algorithm.build()
    except Exception:
        if is_new:  # A wrong setting leaves no folder.
            directory.unlock()  # Windows removes no open file.
            shutil.rmtree(directory.path)
        raise
    run = algorithm.run(
        directory,
        continue_stopped=continue_stopped,
        loggers=make_loggers(directory),
        **options,
    )
    return run.run()


def ending(
    algorithm: Algorithm,
    open_folder: Callable[[], train_lib.RunDirectory],
    *,
    is_new: bool,
    continues: bool,
) -> str:
    """Returns the message for a run that has ended; empty if it goes on.

    Args:
      algorithm: The algorithm, with a `logdir`.
      open_folder: Opens the folder of the run.
      is_new: Whether an earlier run in the folder does not count.
      continues: Whether a run that a callback has stopped continues.

    Raises:
      RunDirectoryError: The folder belongs to another run.
    """
    folder = algorithm.logdir
    assert folder is not None
    if is_new or not (folder / "config.json").exists():
        return ""
    iteration = open_folder().finished_iteration()
    if iteration is not None:
        return finished_runs.text(iteration, folder)
    stop = None if continues else stopped_runs.find(folder, algorithm.length)
    return "" if stop is None else stop.text(folder)


def check_environment(algorithm: Algorithm) -> None:
    """Checks the environment, see `Algorithm.check_environment`, without messages."""
    # dm_control says which library draws.
    absl_logging.set_verbosity(absl_logging.WARNING)
    algorithm.check_environment()


def prepare_kernels(algorithm: Algorithm) -> None:
    """Sets up TensorFlow for an algorithm, before it is imported."""
    is_free = not (threads.HAS_USERS_KERNELS or portable.is_on())
    if algorithm.settings.get("conv_layer_params") and is_free:
        # oneDNN's kernels nearly halve the time of an update with convolutions.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
    quiet.quieten_tensorflow()
