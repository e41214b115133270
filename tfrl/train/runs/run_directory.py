"""The folder of a run, with the paths of its outputs and its configuration."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import tempfile
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from tfrl.loggers import csv as csv_logger
from tfrl.savers import checkpoint_names
from tfrl.system import directory_lock, files, paths
from tfrl.train.runs import (
    finished_runs,
    full_disk,
    run_files,
    stopped_runs,
)

_CONFIG = "config.json"
# The identifiers of the run in Weights & Biases and MLflow.
TRACKING = "tracking.json"
_IS_ITERATION = re.compile("[0-9]{1,18}").fullmatch
# The outputs of a run. `overwrite` removes these, and the program's own outputs.
_OUTPUTS = (
    "config.json",
    "metrics.csv",
    "diagnostics.jsonl",
    "report.html",
    "learning_curve.png",
    "agent.mp4",
    run_files.IMAGINED,
    "checkpoints",
    "policy",
    "final_policy",
    "tensorboard",
    finished_runs.NAME,
    stopped_runs.NAME,
    TRACKING,
    # Of a run with actors.
    "replay_server",
    "manifest.json",
    # Of a sweep.
    "runs",
    "curves.csv",
    "learning_curves.png",
)


RunDirectoryError = run_files.RunDirectoryError


class RunDirectory:
    """Paths of a run's outputs, all under `logdir`.

    The constructor creates the folder and writes the run's configuration to
    `config.json`. If the folder already has a configuration, it must be the same; the
    run is then resumed, or made longer if its length has grown. Only one process may
    use the folder: the constructor holds its lock while it works, and a `Run` until it
    ends. `lock` keeps it locked in between, too.
    """

    def __init__(
        self,
        logdir: str | os.PathLike,
        config: Mapping[str, Any],
        overwrite: bool = False,
        *,
        may_change: Collection[str] = (),
        may_grow: Collection[str] = ("num_iterations", "num_environment_steps"),
        further_outputs: Collection[str] = (),
        absent: Mapping[str, Any] | None = None,
    ) -> None:
        """Creates the folder, or checks that it belongs to this run.

        Args:
          logdir: The folder.
          config: The run's configuration; its values must be valid in JSON.
          overwrite: Whether to remove the outputs of an earlier run first.
          may_change: The names of fields that may differ from the earlier run's
            configuration, such as the device.
          may_grow: The names of fields whose integers may be larger than in the earlier
            run's configuration; smaller ones, too, if a callback has stopped that run.
            `grow` writes them to it.
          further_outputs: The names of files and folders that the program itself writes
            to the folder. They are removed and reported like the other outputs.
          absent: The values that fields stand for which the configuration of the
            earlier run lacks, since the program had no such field then; None for none.

        Raises:
          RunDirectoryError: The folder cannot be written, or has a name that TensorFlow
            interprets as a pattern, or belongs to a run of another configuration (the
            error lists the different fields), or holds outputs but no configuration, or
            another process uses it.
          FullDiskError: There is no space left for its files.
        """
        self.path = pathlib.Path(logdir)
        self.checkpoints = self.path / "checkpoints"
        self.policy = self.path / "policy"
        self.final_policy = self.path / "final_policy"
        self.tensorboard = self.path / "tensorboard"
        self.metrics_csv = self.path / "metrics.csv"
        self.diagnostics = self.path / "diagnostics.jsonl"
        self.report = self.path / "report.html"
        self.learning_curve = self.path / "learning_curve.png"
        self.video = self.path / "agent.mp4"
        self.replay_server = self.path / "replay_server"
        self.manifest = self.path / "manifest.json"
        self._further_outputs = tuple(further_outputs)
        self._config: dict[str, Any] = json.loads(json.dumps(config))
        self._may_change = frozenset(may_change)
        self._may_grow = frozenset(may_grow)
        self._absent: dict[str, Any] = json.loads(json.dumps(dict(absent or {})))
        self._grown: dict[str, tuple[int, int]] = {}
        self._lock: directory_lock.DirectoryLock | None = None
        _check_name(self.path)
        self._has_metrics = False
        run_files.check_links(self.path)
        _check_writable(self.path)
        was_held = directory_lock.is_held(self.path)
        self._take_lock()
        try:
            if overwrite:
                self._remove_outputs()
            self._claim()
        finally:
            if not was_held:
                self.unlock()

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, valid in JSON, for a process on another host."""
        return {
            "logdir": str(self.path.absolute()),
            "config": self.config,
            "may_change": sorted(self._may_change),
            "may_grow": sorted(self._may_grow),
            "further_outputs": list(self._further_outputs),
            "absent": self._absent,
        }

    @property
    def config(self) -> dict[str, Any]:
        """The run's configuration."""
        return dict(self._config)

    def grow(self) -> dict[str, tuple[int, int]]:
        """Writes lengths that have changed to the configuration; a `Run` calls this.

        Returns:
          The names of these fields, with their numbers in the earlier run, and now. A
          number of iterations that a number of steps has changed is left out.
        """
        grown, self._grown = self._grown, {}
        if grown:
            finished_runs.unmark(self.path)
            now = {name: number for name, (_, number) in grown.items()}
            self._write_config({**run_files.read_config(self.path / _CONFIG), **now})
        derived = {"num_iterations"} if "num_environment_steps" in grown else {}
        return {name: two for name, two in grown.items() if name not in derived}

    def lock(self) -> None:
        """Locks the folder for this process, until `unlock` or the end of the process.

        Raises:
          RunDirectoryError: Another process uses the folder, or it belongs to a run of
            another configuration now.
        """
        was_held = directory_lock.is_held(self.path)
        self._take_lock()
        try:
            self._claim()
        except RunDirectoryError:
            if not was_held:
                self.unlock()
            raise

    def _take_lock(self) -> None:
        try:
            with full_disk.explaining():
                self._lock = directory_lock.lock(self.path)
            folder = os.stat(self.path)
            self._locked_folder = folder.st_dev, folder.st_ino
        except directory_lock.DirectoryLockedError as error:
            raise RunDirectoryError(f"logdir {str(self.path)!r}: {error}") from None
        except full_disk.FullDiskError:
            raise
        except OSError as error:
            raise RunDirectoryError(
                f"logdir {str(self.path)!r}: its lock cannot be written ({error}); "
                "remove that file if no process uses the folder."
            ) from None

    def unlock(self) -> None:
        """Lets other processes use the folder; does nothing without a lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _claim(self) -> None:
        """Writes the configuration, or compares it with the existing one."""
        path = self.path / _CONFIG
        if path.exists():
            stood_for = {k: v for k, v in self._absent.items() if k in self._config}
            before = {**stood_for, **run_files.read_config(path)}
            was_stopped = (self.path / stopped_runs.NAME).exists()
            grown = _grown(before, self._config, self._may_grow, may_shrink=was_stopped)
            free = self._may_change | grown.keys()
            _check_same(
                self.path,
                _without(before, free),
                _without(self._config, free),
            )
            self._grown = grown
            return
        found = [name for name in self._outputs if (self.path / name).exists()]
        if found:
            raise RunDirectoryError(
                f"logdir {str(self.path)!r}: holds {', '.join(found)} but no "
                f"{_CONFIG}, so the run that they belong to is unknown; choose "
                "another logdir, or start again with overwrite=True or --overwrite."
            )
        self._write_config(self._config)

    def _write_config(self, config: Mapping[str, Any]) -> None:
        path = self.path / _CONFIG
        with full_disk.explaining():
            files.write_text(path, json.dumps(config, indent=2, sort_keys=True) + "\n")

    @property
    def _outputs(self) -> tuple[str, ...]:
        return *_OUTPUTS, *self._further_outputs

    def _remove_outputs(self) -> None:
        for name in self._outputs:
            files.remove(self.path / name)

    def check_checkpoints(self) -> None:
        """Checks that a run with outputs in the folder has not lost its checkpoints.

        A run that was killed before its first checkpoint starts from the beginning,
        with a warning. Unfinished files, which a killed run has left, are removed; see
        `checkpoint_files.remove_unfinished` for those of checkpoints.

        Raises:
          RunDirectoryError: There was a checkpoint, and now there is none.
        """
        for unfinished in self.path.glob(f"{files.UNFINISHED}*"):
            files.remove(unfinished)
        has_folder = self.checkpoints.is_dir()
        if checkpoint_names.newest_first(self.checkpoints):
            return
        rows = self._rows()
        iterations = [int(row["iteration"]) for row in rows]
        found = [
            path.name for path in (self.policy, self.final_policy) if path.exists()
        ]
        if not found and max(iterations, default=0) <= 0:
            return
        last = max(iterations, default=0)
        # Each row with an evaluation, except the first, is followed by a checkpoint; a
        # later row shows that the checkpoint was written.
        evaluated = [
            iteration
            for iteration, row in zip(iterations, rows, strict=True)
            if iteration > 0 and row.get("evaluation_return")
        ]
        outputs = ", ".join(["metrics.csv"] * bool(rows) + found)
        if (
            not has_folder
            or (self.checkpoints / "checkpoint").exists()
            or last > min(evaluated, default=last)
        ):
            raise RunDirectoryError(
                f"logdir {str(self.path)!r}: it holds {outputs} of a run up to "
                f"iteration {last:,}, but {self.checkpoints} has no checkpoint, so the "
                "run cannot be resumed. Restore that folder from a copy, choose "
                "another logdir, or start again with overwrite=True or --overwrite."
            )
        warnings.warn(
            f"NO CHECKPOINT: logdir {str(self.path)!r} holds {outputs} of a run up to "
            f"iteration {last:,}, which ended before its first checkpoint; it starts "
            "from the beginning.",
            RuntimeWarning,
            stacklevel=3,
        )

    def check_intact(self, iteration: int) -> None:
        """Checks that nobody has removed the folder since this process locked it.

        A configuration that is missing alone is written again, with a warning.

        Args:
          iteration: The run's iteration, for the error.

        Raises:
          RunDirectoryError: The folder or a file in it was removed or replaced, or
            another process has taken the folder.
        """
        loss = self._lock and self._lock.loss()
        has_config = (self.path / _CONFIG).exists()
        is_empty = bool(loss) and not has_config
        if self._lock is None or is_empty or not self._is_same_folder():
            raise RunDirectoryError(
                f"logdir {str(self.path)!r}: it was removed or replaced during the "
                f"run. All outputs up to iteration {iteration:,} are lost: the "
                "configuration, the metrics, the checkpoints and the policies. Start "
                "the run again."
            )
        if loss is not None:
            raise RunDirectoryError(
                f"logdir {str(self.path)!r}: {loss}, so another process may write to "
                f"the folder; this run stops at iteration {iteration:,}. Run the same "
                "command again when no other process uses the folder, to resume from "
                "the last checkpoint."
            )
        if not has_config:
            self._write_config(self._config)
            warnings.warn(
                f"{self.path / _CONFIG}: it was removed during the run, at iteration "
                f"{iteration:,} or before; it was written again, and nothing is lost.",
                RuntimeWarning,
                stacklevel=4,
            )
        if self._has_metrics and not self.metrics_csv.exists():
            raise RunDirectoryError(
                f"{self.metrics_csv}: it was removed during the run; its rows up to "
                f"iteration {iteration:,} are lost. Restore it from a copy if you have "
                "one, and run the same command again to resume from the last "
                "checkpoint."
            )
        self._has_metrics = self.metrics_csv.exists()

    def _is_same_folder(self) -> bool:
        """Whether the folder is still the locked folder."""
        try:
            folder = os.stat(self.path)
        except OSError:
            return False
        return (folder.st_dev, folder.st_ino) == self._locked_folder

    def mark_finished(self, iteration: int) -> None:
        """Records that the run has finished, and the outputs that it has now.

        Args:
          iteration: The iteration at which it ended.
        """
        finished_runs.mark(self.path, iteration)

    def finished_iteration(self) -> int | None:
        """Returns the iteration at which the run has finished, or None.

        This takes a fraction of a second and no TensorFlow, so a script may ask before
        it builds its agent. If an output was changed or damaged since, the result is
        None, and a `Run` then looks at the outputs and writes them again. It is also
        None if the run should become longer.
        """
        return None if self._grown else finished_runs.find(self.path)

    def evaluation_return(self, iteration: int) -> float | None:
        """Returns the mean return of an evaluation in metrics.csv, or None."""
        for row in self._rows():
            if int(row["iteration"]) == iteration and row.get("evaluation_return"):
                with contextlib.suppress(ValueError):
                    return float(row["evaluation_return"])
        return None

    def _rows(self) -> list[dict[str, str]]:
        """Returns the rows of metrics.csv that have an iteration."""
        if not self.metrics_csv.exists():
            return []
        rows = run_files.read_metrics(self.metrics_csv)
        return [row for row in rows if _IS_ITERATION(row.get("iteration", ""))]

    def forget_after(self, iteration: int) -> None:
        """Drops the rows of metrics.csv after `iteration`, which will be rewritten.

        Warns if a run that is resumed has lost the file.

        Raises:
          ValueError: The file is not the metrics of a run.
        """
        if iteration > 0 and not self.metrics_csv.exists():
            warnings.warn(
                f"METRICS LOST: {self.metrics_csv} is missing; the rows up to "
                f"iteration {iteration:,} are lost, and the learning curve starts "
                "there. Restore the file from a copy if you have one.",
                RuntimeWarning,
                stacklevel=4,
            )
        csv_logger.drop_rows_after(self.metrics_csv, "iteration", iteration)


def _check_name(path: pathlib.Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunDirectoryError(
            f"logdir {str(path)!r}: has bytes that are not UTF-8, expected a name in "
            "UTF-8, which TensorFlow needs for its files; choose another --logdir."
        ) from None
    problem = paths.pattern_problem(path)
    if problem is not None:
        raise RunDirectoryError(f"logdir {str(path)!r}: {problem} for --logdir.")


def _check_writable(path: pathlib.Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise RunDirectoryError(
            f"logdir {str(path)!r}: cannot be written ({error.strerror}); choose a "
            "folder that you may write to with --logdir."
        ) from None


def _check_same(
    logdir: pathlib.Path, before: dict[str, Any], now: dict[str, Any]
) -> None:
    """Compares a configuration with the earlier one.

    Raises:
      RunDirectoryError: They differ; the error lists the fields.
    """
    before, now = flatten(before), flatten(now)
    absent = "(absent)"
    differences = [
        f"  {field}: was {before.get(field, absent)!r}, is {now.get(field, absent)!r}"
        for field in sorted({*before, *now})
        if before.get(field, absent) != now.get(field, absent)
    ]
    if differences:
        raise run_files.RunDirectoryError(
            f"logdir {str(logdir)!r}: belongs to a run of another configuration:\n"
            + "\n".join(differences)
            + "\nGive the earlier values to resume it, choose another logdir, or "
            "start again there with overwrite=True or --overwrite."
        )


def _grown(
    before: dict[str, Any],
    now: dict[str, Any],
    fields: Collection[str],
    *,
    may_shrink: bool = False,
) -> dict[str, tuple[int, int]]:
    """Returns the old and the new numbers of the fields that have grown.

    Args:
      before: The earlier configuration.
      now: The configuration.
      fields: The names of the fields.
      may_shrink: Whether smaller numbers count as well.
    """
    pairs = {name: (before.get(name), now.get(name)) for name in sorted(fields)}
    return {
        name: (old, new)
        for name, (old, new) in pairs.items()
        if type(old) is type(new) is int and (new > old or (may_shrink and new < old))
    }


def _without(config: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Returns the configuration without some of its fields."""
    return {name: value for name, value in config.items() if name not in fields}


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the values of a nested configuration, by names such as `a.b`."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
