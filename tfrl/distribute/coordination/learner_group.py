"""A learner that trains in a group with the learners of other processes.

TensorFlow cannot replace a process of a group. So when one process ends, all end, with
status 1, and are started again. The new group continues from the last checkpoint.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

from tfrl import replay_service
from tfrl.distribute.coordination import coordinator_client
from tfrl.replay_service.transport import addresses
from tfrl.system import log

if TYPE_CHECKING:
    import tensorflow as tf

_POLL = 0.2  # Seconds between looks at the group.

_Result = TypeVar("_Result")
_begun = threading.Event()


def has_begun() -> bool:
    """Whether this process has trained in a group."""
    return _begun.is_set()


def train(
    member: coordinator_client.CoordinatorClient,
    host: str,
    learn: Callable[[tf.distribute.Strategy], _Result],
) -> _Result | None:
    """Trains with a group until the run ends; ends the process if a member is lost.

    TensorFlow must not have computed anything in this process before.

    Args:
      member: This process's connection to the coordinator.
      host: The address of this host for the others.
      learn: A function that trains with the strategy of the group.

    Returns:
      The result of `learn`, in the chief; None elsewhere, and if the run stops before
      the group is complete.

    Raises:
      Exception: Any error of `learn` other than the loss of a process or a server.
    """
    group = member.wait_for_group(addresses.join(host, _free_port(host)))
    if group is None:
        return None
    is_over = threading.Event()

    def watch() -> None:
        # A learner whose partner is gone may wait for the partner without a timeout.
        while not is_over.wait(_POLL):
            loss = member.loss_in(group)
            if loss is not None and not is_over.is_set():
                _end(member, f"The group of learners is broken: {loss}.")

    threading.Thread(target=watch, name="group", daemon=True).start()
    from tfrl.train import worker_group

    variables = worker_group.environment(group["addresses"], member.task.number)
    _begun.set()
    os.environ.update(variables)
    try:
        # `watch` needs no time limit, which would start too many threads.
        result = learn(worker_group.make_strategy(timeout_s=None))
    except (
        worker_group.WorkerLostError,
        replay_service.ReverbError,
        *worker_group.LOST,  # While the parts are made.
    ) as error:
        is_over.set()
        _end(member, str(error))
    # A chief that ends in order to be started again, such as by SIGTERM, needs the
    # other learners then.
    while result is None and member.stopped_by is None:
        time.sleep(_POLL)
    is_over.set()
    return result


def _end(member: coordinator_client.CoordinatorClient, lost: str) -> NoReturn:
    """Ends the process at once, since TensorFlow would wait for the lost one."""
    error = traceback.format_exc() if sys.exception() else lost
    member.leave(error=error, lost=lost)
    log.info(f"{member.task.title}: {lost} It is to be started again.")
    sys.stderr.flush()
    os._exit(1)


def _free_port(host: str) -> int:
    """Returns a free port of this host."""
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((name, 0))
        return int(probe.getsockname()[1])
