"""`RayActor`, the class that Ray places for each process. It imports no TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tfrl.distribute.coordination import remote_work
from tfrl.distribute.process_roles import Task
from tfrl.replay_service.transport import connection


class RayActor:
    """One process of a run."""

    def work(
        self,
        task: Task,
        coordinator: str,
        experiment: Any,
        token: str,
        variables: Mapping[str, str],
    ) -> int:
        """Does the work of a task until the run ends; returns the exit status.

        Args:
          task: The task.
          coordinator: The coordinator's address, "host:port".
          experiment: The `Experiment`; a replay server needs none.
          token: The run's token.
          variables: Variables of the environment, such as the paths of TLS's files.
        """
        connection.set_default_token(token)
        os.environ.update(variables)
        return remote_work.work(task, coordinator, lambda **_: experiment)
