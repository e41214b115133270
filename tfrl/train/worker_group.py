"""Groups of processes that train one agent together, with TensorFlow's collectives.

Each process of a group, a worker, is started with `environment(addresses, index)` and
runs the same program:

```python
strategy = train.worker_group.make_strategy()  # Before anything else of TensorFlow.
with strategy.scope():
    agent = agents.DqnAgent(...)
agent.initialize()
loop = train.StrategyLoop(agent, make_dataset, strategy, batch_size=256)
result = loop.run_group(
    lambda: train.Run(
        loop, train.RunDirectory("run", {}), num_iterations=1_000
    ).run()
)
```

The first worker, the chief, calls the function: it restores the last checkpoint, and
writes all outputs. The other workers start with the chief's numbers, do the calls of
its loop together with it, and write nothing, so they need no common disk.

TensorFlow cannot replace a worker. If one ends, the others raise a `WorkerLostError`;
with a timeout, they also raise it if one stops. The supervisor of the workers must then
end all workers, with SIGTERM and if necessary SIGKILL, and start all again; the run
then continues from its last checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.utils import number_checks, variables

# Messages other than a number of iterations.
SHARE, END = -1, -2

# Collectives of integers support only these dtypes.
_SUMMED = (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)


class WorkerLostError(RuntimeError):
    """Raised if another worker of the group has ended, or does not answer."""


def environment(addresses: Sequence[str], index: int) -> dict[str, str]:
    """Returns the environment variables of a worker.

    Args:
      addresses: The address "host:port" of each worker, which must be free there; the
        first is the chief's.
      index: The index of the worker's own address.

    Raises:
      ValueError: There are fewer than two workers, or none has that `index`.
    """
    if len(addresses) < 2:
        raise ValueError(
            f"addresses: got {list(addresses)}, expected the addresses of two workers "
            "or more; train in a single process with a MirroredStrategy, or without a "
            "strategy."
        )
    number_checks.check_integer("index", index, 0, remedy="workers count from 0")
    if index >= len(addresses):
        raise ValueError(
            f"index: got {index} for {len(addresses)} addresses, expected "
            f"{len(addresses) - 1} at most; workers count from 0."
        )
    cluster = {"worker": list(addresses)}
    task = {"type": "worker", "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def make_strategy(
    timeout_s: float | None = None,
) -> tf.distribute.MultiWorkerMirroredStrategy:
    """Returns the strategy of this worker; waits for the others.

    Args:
      timeout_s: The longest time, in seconds, that workers wait for each other. None
        waits for ever: a worker that has ended is still noticed, but a worker that is
        stopped or hangs is not. The time must be longer than any work that the chief
        does alone between two calls of the loop, such as an evaluation. An update uses
        several TensorFlow collectives, and TensorFlow keeps a thread for each of them
        until the time is over. With 600 seconds and 24 updates a second, a process ran
        out of threads after some 2,300 updates.

    Raises:
      ValueError: The environment variables do not describe a worker, or the time is not
        positive.
      RuntimeError: TensorFlow has computed something before.
    """
    number_checks.check_number(
        "timeout_s",
        timeout_s,
        0.0,
        excludes_low=True,
        optional=True,
        remedy="None waits for ever",
    )
    if "TF_CONFIG" not in os.environ:
        raise ValueError(
            "TF_CONFIG: got no such environment variable, expected this process to be "
            "a worker of a group; start it with "
            "tfrl.train.worker_group.environment(addresses, index)."
        )
    return tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            timeout_seconds=timeout_s
        )
    )


class Messages:
    """Messages of the chief to the other workers: numbers, and its variables."""

    def __init__(self, strategy: tf.distribute.Strategy, shared: Sequence[Any]) -> None:
        """Stores the arguments.

        Args:
          strategy: The strategy of the workers.
          shared: The variables that `share` sends, made in the strategy's scope.
        """
        self._strategy = strategy
        self._shared = variables.as_tf_variables(shared)
        self._sent = tf.function(self._send, autograph=False)
        self.share = tf.function(self._share, autograph=False)

    def send(self, number: int) -> int:
        """Returns the chief's number, in every worker."""
        sent = self._sent(tf.constant(number, tf.int64))
        return int(self._strategy.experimental_local_results(sent)[0])

    def _send(self, number: tf.Tensor) -> Any:
        return self._strategy.run(_of_chief, args=(number,))

    def _share(self) -> None:
        """Assigns the chief's values to the variables, in every worker."""

        def assign() -> None:
            for variable in self._shared:
                variable.assign(_of_chief(tf.convert_to_tensor(variable)))

        self._strategy.run(assign)


def messages_of(
    strategy: tf.distribute.Strategy, shared: Sequence[Any]
) -> Messages | None:
    """Returns the messages of a group's workers; None if the process is alone."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return None
    return Messages(strategy, shared)


def is_chief(strategy: tf.distribute.MultiWorkerMirroredStrategy) -> bool:
    """Whether this process is the first worker of its group."""
    return strategy.cluster_resolver.task_id == 0


def lost(error: tf.errors.OpError) -> WorkerLostError:
    """Returns the error to raise instead of an error of TensorFlow's collectives."""
    return WorkerLostError(
        "strategy: another worker of the group has ended or does not answer, and "
        "TensorFlow cannot replace it; end all workers, by SIGKILL if need be, and "
        "start all of them again, and the run continues from its last checkpoint. "
        f"({error.message.splitlines()[0] if error.message else type(error).__name__})"
    )


# Texts by which TensorFlow reports that a collective has failed.
LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


def _of_chief(value: tf.Tensor) -> tf.Tensor:
    """Returns the chief's value, in every replica."""
    replica = tf.distribute.get_replica_context()
    is_first = tf.equal(replica.replica_id_in_sync_group, 0)
    wide = value if value.dtype in _SUMMED else tf.cast(value, tf.int64)
    own = tf.where(is_first, wide, tf.zeros_like(wide))
    (total,) = replica.all_reduce(tf.distribute.ReduceOp.SUM, [own])
    return tf.cast(total, value.dtype)
