"""Trains the run of a recipe in its folder, as a command does."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from absl import logging as absl_logging

from tfrl import loggers as loggers_lib
from tfrl import train as train_lib
from tfrl.algorithms import run_folders, run_settings
from tfrl.algorithms.recipe import Recipe
from tfrl.system import log, portable, quiet, threads
from tfrl.train.runs import finished_runs, stopped_runs

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder

# The multiplications of a layer in an update from which several threads pay: on two
# processors SAC is 1.06 times as fast with 2 million, 1.4 with 4, and 1.6 with 17.
_LARGE_PRODUCT = 4_000_000


def train(
    recipe: Recipe,
    folder: pathlib.Path,
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
      recipe: What the run is made by.
      folder: Its folder.
      overwrite: Whether to remove the outputs of an earlier run first.
      continue_stopped: Whether a run that a callback has stopped continues.
      make_loggers: Returns further loggers for the run in a folder.
      **options: Further arguments of `run_settings.make_run`.

    Returns:
      The result; None if the run had ended already.

    Raises:
      RunDirectoryError: The folder belongs to another run.
      ValueError: There is no such environment, or the algorithm does not choose its
        actions.
    """
    algorithm = recipe.make(logdir=folder)
    if ended := ending(recipe, folder, is_new=overwrite, continues=continue_stopped):
        log.info(ended)
        return None
    check_environment(algorithm)
    prepare_kernels(algorithm)
    prepare_threads(algorithm)
    is_new = not folder.exists()
    directory = run_folders.open_folder(folder, recipe, overwrite=overwrite)
    # Until the process ends, no other one may train there.
    directory.lock()
    try:
        algorithm.build()
    except Exception:
        if is_new:  # A wrong setting leaves no folder.
            directory.unlock()  # Windows removes no open file.
            shutil.rmtree(directory.path)
        raise
    run = run_settings.make_run(
        algorithm,
        directory,
        continue_stopped=continue_stopped,
        loggers=make_loggers(directory),
        **options,
    )
    return run.run()


def ending(
    recipe: Recipe, folder: pathlib.Path, *, is_new: bool, continues: bool
) -> str:
    """Returns the message for a run that has ended; empty if it goes on.

    Args:
      recipe: What the run is made by.
      folder: Its folder.
      is_new: Whether an earlier run in the folder does not count.
      continues: Whether a run that a callback has stopped continues.

    Raises:
      RunDirectoryError: The folder belongs to another run.
    """
    if is_new or not (folder / "config.json").exists():
        return ""
    iteration = run_folders.open_folder(folder, recipe).finished_iteration()
    if iteration is not None:
        return finished_runs.text(iteration, folder)
    stop = None if continues else stopped_runs.find(folder, recipe.length)
    return "" if stop is None else stop.text(folder)


def check_environment(algorithm: Builder) -> None:
    """Checks the environment, see `Algorithm.check_environment`, without messages."""
    # dm_control says which library draws.
    absl_logging.set_verbosity(absl_logging.WARNING)
    algorithm.check_environment()


def prepare_kernels(algorithm: Builder) -> None:
    """Sets up TensorFlow for an algorithm, before it is imported."""
    if algorithm.settings.get("conv_layer_params") and not portable.is_on():
        # oneDNN's kernels nearly halve the time of an update with convolutions.
        threads.choose(threads.KERNELS, "1")
    quiet.quieten_tensorflow()


def prepare_threads(algorithm: Builder) -> None:
    """Lets an algorithm with large layers have all processors; see `threads.choose`."""
    is_large = algorithm.largest_product() >= _LARGE_PRODUCT
    has_convolutions = bool(algorithm.settings.get("conv_layer_params"))
    if (is_large or has_convolutions) and not portable.is_on():
        threads.choose(threads.INSIDE_OPERATIONS, "0")
