"""The loggers of an experiment's parts."""

from __future__ import annotations

from tfrl.acme.utils.loggers import base
from tfrl.loggers import default


def make_experiment_logger(
    label: str, steps_key: str | None = None, task_instance: int = 0
) -> base.Logger:
    """Returns `make_default_logger(label)`.

    Args:
      label: The name of the part.
      steps_key: Accepted because Acme has it, where it has no effect either.
      task_instance: Accepted because Acme has it, where it has no effect either.
    """
    del steps_key, task_instance
    return default.make_default_logger(label)


def create_experiment_logger_factory() -> base.LoggerFactory:
    """Returns `make_experiment_logger`, the factory."""

    def make(
        label: str, steps_key: str | None = None, instance: int | None = None
    ) -> base.Logger:
        return make_experiment_logger(label, steps_key, instance or 0)

    return make
