"""The training loop of the replicas of a `tf.distribute` strategy.

```python
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    agent = agents.DqnAgent(...)  # With its networks and optimizers.
agent.initialize()
loop = StrategyLoop(
    agent,
    lambda batch_size, seed: replay_buffer.as_dataset(batch_size, 2),
    strategy,
    batch_size=256,
)
train.Run(loop, train.RunDirectory("run", {}), num_iterations=1_000).run()
```

With a `MultiWorkerMirroredStrategy`, see `train.worker_group`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.train import distribution, worker_group
from tfrl.train.loops import dataset_loop, loop_checks, replay_updates
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

_Result = TypeVar("_Result")


class StrategyLoop(dataset_loop.DatasetLoop):
    """Trains the replicas of a strategy, each on its own elements of a dataset.

    An iteration is an update on one batch, which is divided among the replicas. The
    weights are the same as from a `DatasetLoop` on one device with the whole batch.
    Either loop can restore a checkpoint of the other.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        experience_dataset_fn: Callable[[int, int], tf.data.Dataset],
        strategy: tf.distribute.Strategy,
        *,
        batch_size: int,
        seed: int | None = None,
        replay_buffer: replay_buffer_lib.ReplayBuffer | None = None,
        update_normalizers: bool = True,
        priority_fn: replay_updates.PriorityFn | None = None,
        prepare_fn: dataset_loop.PrepareFn | None = None,
        collected: dataset_loop.CollectedElsewhere | None = None,
    ) -> None:
        """Creates the loop.

        Args:
          agent: The agent, made in `strategy.scope()` with its networks and optimizers.
          experience_dataset_fn: Makes the dataset; called once in each process. It
            takes the number of examples in an element, which is the part of one
            replica, and a seed, which differs between processes. The elements are as
            for a `DatasetLoop`. The elements go to the process's replicas in turn.
          strategy: A `MirroredStrategy` or a `MultiWorkerMirroredStrategy`.
          batch_size: The number of examples in a batch of all replicas.
          seed: The seed from which the datasets' seeds derive; None draws a seed.
          replay_buffer: See `DatasetLoop`. Each replica sets the priorities of its own
            examples.
          update_normalizers: See `DatasetLoop`.
          priority_fn: See `OffPolicyLoop`.
          prepare_fn: See `DatasetLoop`. Each part of an element has a value for each
            replica.
          collected: See `DatasetLoop`.

        Raises:
          ValueError: The batch cannot be divided among the replicas, they cannot train
            the agent (see `distribution.check_parts`), or the agent's reward normalizer
            follows the steps of environments.
          TypeError: A part is of another kind.
        """
        loop_checks.check_agent(agent)
        replicas = strategy.num_replicas_in_sync
        number_checks.check_integer(
            "batch_size", batch_size, replicas, remedy="give each replica an example"
        )
        if batch_size % replicas:
            raise ValueError(
                f"batch_size: got {batch_size}, expected a multiple of the {replicas} "
                f"replicas, such as {batch_size - batch_size % replicas}, since each "
                "has the same part of a batch."
            )
        distribution.check_parts(strategy, agent, agent.train_step_counter)
        self._strategy = strategy
        self._seed_of_data = seeds.draw_number() if seed is None else seed
        self._part_size = batch_size // replicas
        super().__init__(
            agent,
            experience_dataset_fn,
            replay_buffer,
            update_normalizers=update_normalizers,
            priority_fn=priority_fn,
            prepare_fn=prepare_fn,
            collected=collected,
        )
        self._messages = worker_group.messages_of(strategy, agent.variables())
        self._has_raised = False

    def run_group(self, train: Callable[[], _Result]) -> _Result | None:
        """Calls a function in the chief, which runs the loop; the others follow it.

        See `train.worker_group`. A process that is alone just calls the function.

        Args:
          train: Runs this loop, such as `train.Run(loop, ...).run()`.

        Returns:
          The result of the function; None in workers other than the chief.

        Raises:
          WorkerLostError: Another worker has ended, or does not answer.
          Exception: See `run`. An error of the updates is raised in every worker.
        """
        if self._messages is None:
            return train()
        if not worker_group.is_chief(self._strategy):
            self._follow(self._messages)
            return None
        try:
            return train()
        finally:
            # The others have seen an exception of a call themselves.
            if not self._has_raised:
                self._send(worker_group.END)

    def _follow(self, messages: worker_group.Messages) -> None:
        """Does the calls of the chief's loop, until it ends."""
        while (number := self._send(0)) != worker_group.END:
            with self._own_errors():
                if number == worker_group.SHARE:
                    messages.share()
                    continue
                self._call((), tf.constant(number, tf.int64), self._zero_loss)
                self._iteration.assign_add(number)

    def _start(self) -> bool:
        if self._messages is not None:
            self._messages.send(worker_group.SHARE)
            self._messages.share()
        return True

    def _announce(self, size: int) -> None:
        if self._messages is not None:
            self._messages.send(size)

    def _send(self, number: int) -> int:
        assert self._messages is not None
        with self._own_errors():
            return self._messages.send(number)

    @contextlib.contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            with super()._own_errors():
                yield
        except worker_group.LOST as error:
            self._has_raised = True
            if self._messages is None:
                raise
            raise worker_group.lost(error) from error
        except BaseException:
            self._has_raised = True
            raise

    def _distributed(self, experience_dataset_fn: Any) -> tuple[Any, Any]:
        spec = None

        def make(context: tf.distribute.InputContext) -> tf.data.Dataset:
            nonlocal spec
            # NumPy takes no negative seeds.
            entropy = [self._seed_of_data % 2**64, context.input_pipeline_id]
            seed = int(np.random.default_rng(entropy).integers(2**31))
            dataset = experience_dataset_fn(self._part_size, seed)
            spec = dataset.element_spec
            return dataset

        return distribution.iterator(self._strategy, make), spec
