"""Trains, saves and loads algorithms, and asks them for actions."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrl import train
from tfrl.algorithms import registry, run_folders, run_settings
from tfrl.environments.boundary import running_steps
from tfrl.reports import run_files
from tfrl.system import interrupts
from tfrl.train.runs import callbacks as callbacks_lib
from tfrl.train.runs import (
    history,
    run_length,
    run_result,
    stopped_runs,
)
from tfrl.train.runs import progress as progress_lib

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm
    from tfrl.eval import evaluate as evaluate_lib


def in_folder(
    algorithm: Algorithm,
    folder: pathlib.Path,
    length: run_length.RunLength,
    callbacks: Sequence[train.Callback],
    *,
    shows_progress: bool,
    continue_stopped: bool,
) -> run_length.RunLength:
    """Trains up to a length with a run in a folder, unless that is done already.

    Args:
      algorithm: The algorithm, with its parts.
      folder: The folder.
      length: The length of the run.
      callbacks: The callbacks.
      shows_progress: Whether to show the progress.
      continue_stopped: Whether the run continues where a callback has stopped it.

    Returns:
      The length of the run; the part that was done if it stays stopped.

    Raises:
      KeyboardInterrupt: Ctrl-C was pressed.
      Terminated: SIGTERM or SIGHUP came.
    """
    begun = _begun_length(folder)
    stop = None if continue_stopped else stopped_runs.find(folder, length)
    # A stop of an earlier call is over.
    if stop is not None and length.done(algorithm.loop.info()) < stop.done:
        restore(algorithm, folder)
        print(stop.text(folder), file=sys.stderr)
        return length.with_total(stop.done)
    if (
        begun is not None
        and begun.unit == length.unit
        and begun.total > length.total
        and stopped_runs.find(folder, begun) is None
    ):
        # A later call of `learn` has trained on before this program began.
        restore(algorithm, folder)
        return length
    run = with_files(
        algorithm,
        folder,
        length,
        callbacks,
        shows_progress=shows_progress,
        continue_stopped=True,
    )
    result = run.run()
    if not (result.finished or result.stopped_by):
        interrupts.stop()
    return length


def with_files(
    algorithm: Algorithm,
    folder: pathlib.Path,
    length: run_length.RunLength,
    callbacks: Sequence[train.Callback] = (),
    *,
    films: bool = True,
    overwrite: bool = False,
    shows_progress: bool = True,
    continue_stopped: bool = False,
) -> train.Run:
    """Returns the run of an algorithm that writes its outputs to a folder.

    Args:
      algorithm: The algorithm, with its parts.
      folder: The folder.
      length: The length of the run.
      callbacks: The callbacks.
      films: Whether to film the best policy at the end.
      overwrite: Whether to remove the outputs of an earlier run first.
      shows_progress: Whether to show the progress.
      continue_stopped: Whether the run continues where a callback has stopped it.
    """
    s = algorithm.settings
    fields = config_of(algorithm, length)
    directory = run_folders.open_folder(
        folder, fields, s.default_values(), overwrite=overwrite
    )
    if not directory.diagnostics.exists():
        measured = history.History(directory.diagnostics)
        with measured.opened():
            for row in algorithm.rows:
                measured.add(row)
    return train.Run(
        algorithm.loop,
        directory,
        num_iterations=length.num_iterations,
        num_environment_steps=length.num_environment_steps,
        callbacks=callbacks,
        **run_settings.make(
            algorithm.world,
            s,
            algorithm.agent,
            algorithm.title,
            films=films,
            evaluates_untrained=True,
            shows_progress=shows_progress,
            continue_stopped=continue_stopped,
        ),
    )


def config_of(algorithm: Algorithm, length: run_length.RunLength) -> dict[str, Any]:
    """Returns the configuration of a run, for its folder.

    Args:
      algorithm: The algorithm.
      length: The length of the run.
    """
    fields = {
        "algorithm": algorithm.name,
        "env": algorithm.world.name,
        "agent": algorithm.name,
        **algorithm.settings.to_dict(),
        "num_iterations": length.num_iterations or algorithm.num_iterations,
    }
    if str(algorithm.own):
        fields["own_parts"] = str(algorithm.own)
    if algorithm.initial_run:
        fields["initial_run"] = algorithm.initial_run
    if length.num_environment_steps is not None:
        fields["num_environment_steps"] = length.num_environment_steps
    elif length.num_iterations != algorithm.num_iterations:
        fields["schedule_iterations"] = algorithm.num_iterations
    return fields


def without_files(
    algorithm: Algorithm,
    length: run_length.RunLength,
    callbacks: Sequence[train.Callback],
    *,
    shows_progress: bool,
) -> None:
    """Trains up to a length without writing files.

    The policy is evaluated at the usual intervals if there are callbacks to see it.

    Args:
      algorithm: The algorithm, with its parts.
      length: The length of the run.
      callbacks: The callbacks.
      shows_progress: Whether to show the progress.
    """
    from tfrl.train.runs import run_log  # Not at the top: it imports TensorFlow.

    loop, s = algorithm.loop, algorithm.settings
    called = callbacks_lib.CallbackList(callbacks)
    evaluate = None
    if callbacks:
        made = run_settings.make(
            algorithm.world,
            s,
            algorithm.agent,
            algorithm.title,
            films=False,
            evaluates_untrained=False,
        )
        evaluate = functools.partial(_evaluated, made)
    intervals = (s.eval_interval, s.log_interval, *called.intervals)
    info, best, mean = loop.info(), None, None
    called.start(info.iteration)
    find_facts = algorithm.world.facts if callbacks else None
    log = run_log.RunLog(loop, None, (), {}, find_facts=find_facts)
    log.history.rows = algorithm.rows
    with contextlib.ExitStack() as stack:
        stack.enter_context(log.opened())
        bar = progress_lib.Progress(info, length, is_shown=shows_progress)
        stack.callback(bar.close)
        is_requested = stack.enter_context(interrupts.deferred(running_steps.describe))
        while not (length.is_reached(info) or called.stopped_by or is_requested()):
            before = info.iteration
            stop = length.next_stop(info, loop.most_steps_per_iteration, intervals)
            bar.begin(loop.activity)
            started = time.monotonic()
            info = loop.run_call(stop - before)
            elapsed = time.monotonic() - started
            bar.update(info, elapsed)
            log.called(info, info.iteration - before, elapsed)
            if info.iteration == before:
                continue
            called.reached(info.iteration)
            at_end, result = length.is_reached(info), None
            if evaluate and (at_end or info.iteration % s.eval_interval == 0):
                started = time.monotonic()
                result = dataclasses.replace(
                    evaluate(info.iteration),
                    iteration=info.iteration,
                    environment_steps=info.environment_steps,
                )
                log.spent("evaluating_seconds", time.monotonic() - started)
                mean = result.mean
                best = mean if best is None else max(best, mean)
                bar.evaluated(mean, best)
            row = None
            if result or at_end or info.iteration % s.log_interval == 0:
                row = log.write(result)
            called.call(on_log=row, on_evaluation=result)
        bar.show()
    finished = length.is_reached(info)
    called.call(
        on_end=run_result.RunResult(
            iteration=info.iteration,
            finished=finished,
            resumed_at=None,
            best_return=best,
            last_return=mean,
            stopped_by=None if finished else called.stopped_by,
            **bar.speeds(),
        )
    )


def _evaluated(
    made: Mapping[str, Any], iteration: int
) -> evaluate_lib.EvaluationResult:
    """Evaluates with the limit that a `train.Run` of these settings has."""
    # Not at the top: the command's help does not wait for TensorFlow.
    from tfrl.eval import supervision

    limit = supervision.Supervision(
        made["max_eval_steps"], "max_eval_steps", lambda *_: None
    )
    with supervision.supervised(limit):
        result: evaluate_lib.EvaluationResult = made["evaluate"](iteration)
    return result


def load(folder: str | os.PathLike, environment: Any = None, **arguments: Any) -> Any:
    """Loads an algorithm from the folder of a run, or from a folder written by `save`.

    Args:
      folder: The folder.
      environment: The environment, see `Algorithm`; None for the environment that the
        folder names.
      **arguments: Own parts, as they were given when the run began: see `Algorithm`.

    Raises:
      FileNotFoundError: There is no run in the folder.
      ValueError: The run does not belong to one algorithm, or its environment has no
        name.
      CheckpointError: No checkpoint can be used.
    """
    path = pathlib.Path(folder)
    if not (path / "config.json").exists():
        raise FileNotFoundError(
            f"folder: {str(path)!r} holds no config.json; give the logdir of a run, or "
            "a folder that an algorithm was saved to."
        )
    config = run_files.read_config(path / "config.json")
    with run_folders.naming(path):
        registry.find(registry.name_of(config)).Settings.of(config)
        _length_of(config)
    algorithm = registry.algorithm_of(config, environment, **arguments)
    algorithm.build()
    algorithm.reached = restore(algorithm, path)
    algorithm.rows = run_files.read_rows(path / "diagnostics.jsonl")
    # The weights are in the checkpoint; that run may be gone.
    algorithm.initial_run = config.get("initial_run")
    return algorithm


def restore(algorithm: Algorithm, folder: pathlib.Path) -> run_length.RunLength:
    """Restores the last checkpoint in a folder; returns the length of its run."""
    config = run_files.read_config(folder / "config.json")
    length = _length_of(config)
    directory = train.RunDirectory(folder, config)
    train.Run(
        algorithm.loop,
        directory,
        num_iterations=length.num_iterations,
        num_environment_steps=length.num_environment_steps,
    )
    directory.unlock()
    return length


def _begun_length(folder: pathlib.Path) -> run_length.RunLength | None:
    """Returns the length of the run in a folder; None if there is none."""
    config = folder / "config.json"
    if not config.exists():
        return None
    with run_folders.naming(folder):
        return _length_of(run_files.read_config(config))


def _length_of(config: Mapping[str, Any]) -> run_length.RunLength:
    steps = config.get("num_environment_steps")
    if not steps and "num_iterations" not in config:
        raise ValueError(
            "num_iterations: expected the length of the run, got none; restore it."
        )
    return run_length.RunLength(None if steps else config["num_iterations"], steps)
