"""Tries options of EnvPool in another process, because bad ones crash a process.

EnvPool's tasks have about a hundred options, such as the size of a maze, and check few
of them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Mapping
from typing import Any

from tfrl.system import child_errors, interpreter

_CODE = (
    "from tfrl.environments.gymnasium import envpool_trial; "
    "envpool_trial.main(sys.argv[1])"
)
_NUM_STEPS = 3


def check(task: str, options: Mapping[str, Any]) -> None:
    """Makes one member of a task in another process, and steps it.

    Args:
      task: EnvPool's name of the task.
      options: The options of the task.

    Raises:
      ValueError: If that process died. An exception in it is ignored.
    """
    pickled = pickle.dumps((task, dict(options))).hex()
    with interpreter.start(_CODE, [pickled], stdin=subprocess.DEVNULL) as process:
        code = process.wait()
    if code:
        raise ValueError(
            f"envpool_kwargs: got {dict(options)} for {task}, with which a process "
            f"{child_errors.describe_exit(code)} when it made the task, expected "
            "options of the task that EnvPool takes; EnvPool's own message, if any, is "
            "on stderr."
        )


def main(pickled: str) -> None:
    """Makes and steps the task. Bad options end the process; else its status is 0."""
    # The call in the parent's process will raise the same exception.
    try:
        _play(*pickle.loads(bytes.fromhex(pickled)))
    finally:
        os._exit(0)


def _play(task: str, options: Mapping[str, Any]) -> None:
    import envpool
    import numpy as np

    pool = envpool.make_gymnasium(task, num_envs=1, seed=[0], **options)
    pool.reset()
    for _ in range(_NUM_STEPS):
        pool.step(np.asarray(pool.action_space.sample())[np.newaxis])
