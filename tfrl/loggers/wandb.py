"""Writes values to Weights & Biases."""

from __future__ import annotations

from typing import Any

from tfrl.loggers import base


class WandbLogger:
    """Logs values to a run of Weights & Biases, as `label/key`.

    Needs the extra: `pip install 'tfrl[wandb]'`.
    """

    def __init__(
        self,
        label: str = "",
        steps_key: str | None = None,
        *,
        run: Any = None,
        **init_arguments: Any,
    ) -> None:
        """Starts a run, or takes one that has been started.

        Args:
          label: The first part of the names; empty for none.
          steps_key: The key under which the values hold the step, which must not
            decrease; None takes the number of earlier writes as the step.
          run: A run of `wandb.init`, which stays open on `close`; None starts one.
          **init_arguments: Arguments of `wandb.init`, such as `project`, `name` or
            `config`.

        Raises:
          ImportError: If `run` is None and the extra is not installed.
          ValueError: If both `run` and `init_arguments` are given.
        """
        if run is not None and init_arguments:
            raise ValueError(
                f"run: got one, and also arguments for a new run, {init_arguments}, "
                "expected either; leave the arguments out, or let run be None."
            )
        self._owns_run = run is None
        if run is None:
            run = _wandb().init(**init_arguments)
        self._run = run
        self._prefix = f"{label}/" if label else ""
        self._steps_key = steps_key

    def write(self, values: base.Values) -> None:
        """Logs `values`.

        Raises:
          ValueError: If `steps_key` is not among the keys.
        """
        step = None
        if self._steps_key is not None:
            step = int(base.step_of(values, self._steps_key))
        self._run.log(
            {f"{self._prefix}{k}": base.to_plain(v) for k, v in values.items()},
            step=step,
        )

    def close(self) -> None:
        """Finishes the run, unless it was given."""
        if self._owns_run:
            self._run.finish()


def _wandb() -> Any:
    try:
        import wandb
    except ImportError as error:
        raise ImportError(
            "WandbLogger: got no module 'wandb', expected the package of Weights & "
            "Biases; install it with: pip install 'tfrl[wandb]'"
        ) from error
    return wandb
