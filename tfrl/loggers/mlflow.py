"""Writes values to MLflow."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Mapping
from typing import Any

from tfrl.loggers import base


class MLflowLogger:
    """Logs numbers to a run of MLflow, as the metrics `label/key`.

    The run need not be MLflow's active one. None and values that are not numbers are
    left out, as MLflow's metrics are numbers. Needs the extra:
    `pip install 'tfrl[mlflow]'`.

    Attributes:
      run_id: The run's identifier.
    """

    def __init__(
        self,
        label: str = "",
        steps_key: str | None = None,
        *,
        run_id: str | None = None,
        tracking_uri: str | None = None,
        experiment: str = "Default",
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Starts a run, or takes one that has been started.

        Args:
          label: The first part of the names; empty for none.
          steps_key: The key under which the values hold the step; None takes the number
            of earlier writes as the step.
          run_id: A run that has been started, whose status `close` leaves as it is;
            None starts one.
          tracking_uri: A server or a folder of MLflow; None takes MLflow's setting,
            such as `MLFLOW_TRACKING_URI`.
          experiment: The experiment of a new run, which is made if there is none.
          name: The name of a new run.
          params: The parameters of a new run, such as its settings.

        Raises:
          ImportError: If the extra is not installed.
        """
        self._mlflow = _mlflow()
        self._client = self._mlflow.MlflowClient(tracking_uri)
        self._owns_run = run_id is None
        self.run_id = run_id or self._start(experiment, name, params or {})
        self._prefix = f"{label}/" if label else ""
        self._steps_key = steps_key
        self._count = 0

    def _start(
        self, experiment: str, name: str | None, params: Mapping[str, Any]
    ) -> str:
        """Starts a run; returns its identifier."""
        found = self._client.get_experiment_by_name(experiment)
        experiment_id = (
            self._client.create_experiment(experiment)
            if found is None
            else found.experiment_id
        )
        run_id: str = self._client.create_run(experiment_id, run_name=name).info.run_id
        for key, value in params.items():
            self._client.log_param(run_id, key, value)
        return run_id

    def write(self, values: base.Values) -> None:
        """Logs `values`.

        Raises:
          ValueError: If `steps_key` is not among the keys.
        """
        step, self._count = self._count, self._count + 1
        if self._steps_key is not None:
            step = int(base.step_of(values, self._steps_key))
        plain = {key: base.to_plain(value) for key, value in values.items()}
        now = round(time.time() * 1_000)
        metrics = [
            self._mlflow.entities.Metric(f"{self._prefix}{key}", float(x), now, step)
            for key, x in plain.items()
            if isinstance(x, numbers.Real) and not math.isnan(x)
        ]
        self._client.log_batch(self.run_id, metrics=metrics)

    def close(self) -> None:
        """Ends the run, unless it was given."""
        if self._owns_run:
            self._client.set_terminated(self.run_id)


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError as error:
        raise ImportError(
            "MLflowLogger: got no module 'mlflow', expected the package of MLflow; "
            "install it with: pip install 'tfrl[mlflow]'"
        ) from error
    return mlflow
