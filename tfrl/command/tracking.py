"""`--track`: logs a run to Weights & Biases or MLflow, too."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from typing import Any

from absl import flags

from tfrl import loggers, train
from tfrl.environments import extras
from tfrl.system import files
from tfrl.train.runs import run_directory, run_files

_KINDS = ("wandb", "mlflow")


def define_flag(given: flags.FlagValues) -> None:
    """Defines `--track`."""
    text = "Log to wandb or mlflow, too; needs the extra of this name."
    flags.DEFINE_enum("track", None, _KINDS, text, flag_values=given)


def loggers_of(
    kind: str | None,
) -> Callable[[train.RunDirectory], list[loggers.Logger]]:
    """Returns a function that makes the loggers of the run in a folder.

    A run that is resumed continues in the same run of Weights & Biases or MLflow, whose
    identifier is in the folder.

    Args:
      kind: What `--track` names; None for no logger.

    Raises:
      ImportError: Its package is not installed.
    """
    if kind is not None and not extras.is_installed(kind):
        raise ImportError(
            f"track: got {kind!r}, whose package is not installed; install it with: "
            f"pip install 'tfrl[{kind}]'"
        )
    return lambda directory: [] if kind is None else [_logger(kind, directory)]


def _logger(kind: str, directory: train.RunDirectory) -> loggers.Logger:
    path = directory.path / run_directory.TRACKING
    known = run_files.read_json(path) if path.exists() else {}
    if not isinstance(known, dict) or not all(
        isinstance(x, str) for x in known.values()
    ):
        raise ValueError(
            f"{path}: got {known!r}, expected the identifier of a run by its service; "
            "restore it from a copy, or remove it to begin a new run there."
        )
    settings = run_directory.flatten(directory.config)
    make = _wandb if kind == "wandb" else _mlflow
    logger, run_id = make(known.get(kind), directory.path.name, settings)
    files.write_text(path, json.dumps({**known, kind: run_id}) + "\n")
    return logger


def _wandb(
    run_id: str | None, name: str, settings: dict[str, Any]
) -> tuple[loggers.Logger, str]:
    run_id = run_id or uuid.uuid4().hex
    logger = loggers.WandbLogger(
        steps_key="iteration",
        project=os.environ.get("WANDB_PROJECT", "tfrl"),
        name=name,
        config=settings,
        id=run_id,
        resume="allow",
    )
    return logger, run_id


def _mlflow(
    run_id: str | None, name: str, settings: dict[str, Any]
) -> tuple[loggers.Logger, str]:
    logger = loggers.MLflowLogger(
        steps_key="iteration",
        run_id=run_id,
        experiment=os.environ.get("MLFLOW_EXPERIMENT_NAME", "tfrl"),
        name=name,
        params=settings,
    )
    return logger, logger.run_id
