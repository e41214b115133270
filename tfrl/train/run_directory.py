"""The folder of a run, with the paths of its outputs and its configuration."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from collections.abc import Collection, Mapping
from typing import Any

from tfrl.loggers import csv as csv_logger
from tfrl.system import directory_lock
from tfrl.train import full_disk

_CONFIG = "config.json"
# The outputs of a run. `overwrite` removes these and nothing else.
_OUTPUTS = (
    "config.json",
    "metrics.csv",
    "learning_curve.png",
    "agent.mp4",
    "checkpoints",
    "policy",
    "final_policy",
    "tensorboard",
)


class RunDirectoryError(ValueError):
    """The folder cannot be used for this run."""


class RunDirectory:
    """Paths of a run's outputs, all under `logdir`.

    The constructor creates the folder and writes the run's configuration to
    `config.json`. If the folder already has a configuration, it must be the same; the
    run is then resumed. Only one process may use the folder: the constructor holds its
    lock while it works, and a `Run` until it ends. `lock` holds it in between, too.
    """

    def __init__(
        self,
        logdir: str | os.PathLike,
        config: Mapping[str, Any],
        overwrite: bool = False,
        *,
        may_change: Collection[str] = (),
    ) -> None:
        """Creates the folder, or checks that it belongs to this run.

        Args:
          logdir: The folder.
          config: The run's configuration; its values must be valid in JSON.
          overwrite: Whether to remove the outputs of an earlier run first.
          may_change: The names of fields that may differ from the earlier run's
            configuration, such as the device.

        Raises:
          RunDirectoryError: The folder cannot be written, or belongs to a run of
            another configuration (the error lists the different fields), or holds
            outputs but no configuration, or another process uses it.
        """
        self.path = pathlib.Path(logdir)
        self.checkpoints = self.path / "checkpoints"
        self.policy = self.path / "policy"
        self.final_policy = self.path / "final_policy"
        self.tensorboard = self.path / "tensorboard"
        self.metrics_csv = self.path / "metrics.csv"
        self.learning_curve = self.path / "learning_curve.png"
        self.video = self.path / "agent.mp4"
        self._config: dict[str, Any] = json.loads(json.dumps(config))
        self._may_change = frozenset(may_change)
        self._lock: directory_lock.DirectoryLock | None = None
        _check_name(self.path)
        _check_writable(self.path)
        was_held = directory_lock.is_held(self.path)
        self._take_lock()
        try:
            if overwrite:
                self._remove_outputs()
            self._claim(self._config, self._may_change)
        finally:
            if not was_held:
                self.unlock()

    def lock(self) -> None:
        """Locks the folder for this process, until `unlock` or its end.

        Raises:
          RunDirectoryError: Another process uses the folder, or it belongs to a run of
            another configuration now.
        """
        was_held = directory_lock.is_held(self.path)
        self._take_lock()
        try:
            self._claim(self._config, self._may_change)
        except RunDirectoryError:
            if not was_held:
                self.unlock()
            raise

    def _take_lock(self) -> None:
        try:
            self._lock = directory_lock.lock(self.path)
        except directory_lock.DirectoryLockedError as error:
            raise RunDirectoryError(f"logdir {str(self.path)!r}: {error}") from None
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

    def _claim(self, config: dict[str, Any], may_change: Collection[str]) -> None:
        """Writes the configuration, or compares it with the existing one."""
        path = self.path / _CONFIG
        if path.exists():
            before = _read_config(path)
            _check_same(
                self.path, _without(before, may_change), _without(config, may_change)
            )
            return
        found = [name for name in _OUTPUTS if (self.path / name).exists()]
        if found:
            raise RunDirectoryError(
                f"logdir {str(self.path)!r}: holds {', '.join(found)} but no "
                f"{_CONFIG}, so the run that they belong to is unknown; choose "
                "another logdir, or start again with --overwrite."
            )
        temporary = path.with_suffix(".json.tmp")
        with full_disk.explaining():
            temporary.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        temporary.replace(path)

    def _remove_outputs(self) -> None:
        for name in _OUTPUTS:
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def forget_after(self, iteration: int) -> None:
        """Drops the rows of metrics.csv after `iteration`, which will be rewritten.

        Raises:
          ValueError: The file is not the metrics of a run.
        """
        csv_logger.drop_rows_after(self.metrics_csv, "iteration", iteration)


def _check_name(path: pathlib.Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunDirectoryError(
            f"logdir {str(path)!r}: has bytes that are not UTF-8, expected a name in "
            "UTF-8, which TensorFlow needs for its files; choose another --logdir."
        ) from None


def _check_writable(path: pathlib.Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise RunDirectoryError(
            f"logdir {str(path)!r}: cannot be written ({error.strerror}); choose a "
            "folder that you may write to with --logdir."
        ) from None


def _read_config(path: pathlib.Path) -> dict[str, Any]:
    remedy = "restore it, choose another logdir, or start again with --overwrite"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(
            f"{path}: cannot be read ({error}); {remedy}."
        ) from None
    if not isinstance(config, dict):
        raise RunDirectoryError(
            f"{path}: got a {type(config).__name__}, expected a JSON object with the "
            f"fields of the run's configuration; {remedy}."
        )
    return config


def _check_same(
    logdir: pathlib.Path, before: dict[str, Any], now: dict[str, Any]
) -> None:
    before, now = _flatten(before), _flatten(now)
    absent = "(absent)"
    differences = [
        f"  {field}: was {before.get(field, absent)!r}, is {now.get(field, absent)!r}"
        for field in sorted({*before, *now})
        if before.get(field, absent) != now.get(field, absent)
    ]
    if differences:
        raise RunDirectoryError(
            f"logdir {str(logdir)!r}: belongs to a run of another configuration:\n"
            + "\n".join(differences)
            + "\nGive the earlier values to resume it, choose another --logdir, or "
            "start again there with --overwrite."
        )


def _without(config: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in fields}


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
