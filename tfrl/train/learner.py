"""Trains an agent on a dataset, with TF-Agents' `Learner` interface.

```python
learner = Learner(
    root_dir, agent.train_step_counter, agent, lambda: replay_buffer.as_dataset(256, 2)
)
loss = learner.run(iterations=100).loss
```

An iteration takes an element of the dataset and calls `agent.train`. The iterations of
one `run` are one call of a `tf.function`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import trace_counts
from tfrl.savers import whole_checkpoints
from tfrl.train import distribution, interval_trigger
from tfrl.train.loops import dataset_loop
from tfrl.utils import number_checks

# The directories to which a learner and its triggers write.
TRAIN_DIR = "train"
POLICY_SAVED_MODEL_DIR = "policies"
COLLECT_POLICY_SAVED_MODEL_DIR = "collect_policy"
GREEDY_POLICY_SAVED_MODEL_DIR = "greedy_policy"
RAW_POLICY_SAVED_MODEL_DIR = "policy"
POLICY_CHECKPOINT_DIR = "checkpoints"
REPLAY_BUFFER_CHECKPOINT_DIR = "replay_buffer_checkpoints"


class ExperienceAndSampleInfo(NamedTuple):
    """An element of the dataset: experience, and the buffer's information about it."""

    experience: Any
    sample_info: Any


class Learner:
    """Trains an agent on the elements of a dataset, saves and restores it.

    Summaries are written to `root_dir/train`, checkpoints of the agent and the train
    step to `root_dir/train/checkpoints`. The latest checkpoint is restored when the
    learner is made.

    With a `tf.distribute` strategy of several replicas, each replica trains on its own
    element, and all replicas apply the mean of their gradients. So a step equals the
    step of one device on all elements together. Make the optimizers, the networks, the
    agent and the train step in `strategy.scope()`, and the dataset with batches of one
    replica.
    """

    def __init__(
        self,
        root_dir: str | os.PathLike,
        train_step: tf.Variable,
        agent: tf_agent.TFAgent,
        experience_dataset_fn: Callable[[], tf.data.Dataset] | None = None,
        after_train_strategy_step_fn: Callable[..., object] | None = None,
        triggers: Sequence[Callable[..., object]] | None = None,
        checkpoint_interval: int = 100_000,
        summary_interval: int | None = 1000,
        max_checkpoints_to_keep: int = 3,
        use_kwargs_in_agent_train: bool = False,
        strategy: tf.distribute.Strategy | None = None,
        run_optimizer_variable_init: bool = True,
        use_reverb_v2: bool = False,
        direct_sampling: bool = False,
        experience_dataset_options: tf.distribute.InputOptions | None = None,
        strategy_run_options: tf.distribute.RunOptions | None = None,
        summary_root_dir: str | os.PathLike | None = None,
        *,
        jit_compile: bool = False,
        update_normalizers: bool = True,
        train_settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Initializes the agent, and restores the latest checkpoint if there is one.

        Args:
          root_dir: The directory of all outputs.
          train_step: The agent's train step counter.
          agent: The agent.
          experience_dataset_fn: Makes the dataset. Its elements are pairs
            `(experience, sample_info)`, as in `ReplayBuffer.as_dataset`.
            None if `run` is always given an iterator.
          after_train_strategy_step_fn: Called in the graph with
            `((experience, sample_info), loss_info)` after each train step, for instance
            to update priorities.
          triggers: Called with the train step after each `run`; see `train.triggers`.
            Triggers with a method `set_start` count from the restored train step.
          checkpoint_interval: The least number of train steps between checkpoints,
            which are saved at the end of a `run`; 0 or less saves no checkpoints.
          summary_interval: The number of train steps between summaries; 0 or None
            writes no summaries.
          max_checkpoints_to_keep: The number of newest checkpoints to keep.
          use_kwargs_in_agent_train: Whether experience is a dictionary of the keyword
            arguments of `agent.train`.
          strategy: The strategy; None takes the current one.
          run_optimizer_variable_init: Has no effect, since agents make all variables
            when they are made.
          use_reverb_v2: Whether elements have `data` and `info`, like a `ReplaySample`.
          direct_sampling: Whether elements consist of the experience alone, as in
            recorded data.
          experience_dataset_options: See
            `tf.distribute.Strategy.distribute_datasets_from_function`.
          strategy_run_options: See `tf.distribute.Strategy.run`.
          summary_root_dir: The directory of the summaries, instead of `root_dir`.
          jit_compile: Whether XLA compiles the losses and their gradients; see
            `TFAgent.jit_compile_losses`.
          update_normalizers: See `train.DatasetLoop`.
          train_settings: Further keyword arguments of `agent.train`, the same in each
            train step; None for no more.

        Raises:
          ValueError: With a strategy of several replicas, a part was not made in its
            scope, or an optimizer clips or accumulates gradients; or the agent's reward
            normalizer follows the steps of environments.
          CheckpointError: There are checkpoints, but none can be used.
        """
        del run_optimizer_variable_init
        number_checks.check_integer(
            "max_checkpoints_to_keep",
            max_checkpoints_to_keep,
            1,
            remedy="checkpoint_interval=0 saves none",
        )
        self.train_step = train_step
        self.strategy = strategy or tf.distribute.get_strategy()
        self._use_reverb_v2 = use_reverb_v2
        self._direct_sampling = direct_sampling
        self._summary_interval = summary_interval or 0
        distribution.check_parts(self.strategy, agent, train_step)
        self._step = dataset_loop.DatasetStep(
            agent,
            after_train_strategy_step_fn,
            use_kwargs=use_kwargs_in_agent_train,
            update_normalizers=update_normalizers,
            train_settings=train_settings,
            strategy=self.strategy,
            options=strategy_run_options,
        )
        if jit_compile:
            agent.jit_compile_losses = True
        self.train_summary_writer = _summary_writer(
            summary_root_dir or root_dir, self._summary_interval
        )
        self._iterator: Any = None
        if experience_dataset_fn is not None:
            self._iterator = distribution.iterator(
                self.strategy,
                lambda _: experience_dataset_fn(),
                experience_dataset_options,
            )
        with self.strategy.scope():
            agent.initialize()
            self._checkpointer = whole_checkpoints.Checkpointer(
                os.path.join(root_dir, TRAIN_DIR, POLICY_CHECKPOINT_DIR),
                max_to_keep=max_checkpoints_to_keep,
                agent=agent,
                train_step=train_step,
            )
        self.triggers = list(triggers or ())
        for trigger in self.triggers:
            if hasattr(trigger, "set_start"):
                trigger.set_start(self.train_step_numpy)
        self.triggers.append(
            interval_trigger.IntervalTrigger(
                checkpoint_interval,
                lambda: self._checkpointer.save(train_step),
                start=self.train_step_numpy,
            )
        )
        self._train_function = _one_graph(self._train)
        self._step_function = _one_graph(self._reduced_step)
        self._loss_function = _one_graph(self._loss)

    @property
    def train_step_numpy(self) -> Any:
        """The current train step, a NumPy scalar."""
        return self.train_step.numpy()

    def run(
        self,
        iterations: int = 1,
        iterator: Any = None,
        parallel_iterations: int = 10,
    ) -> tf_agent.LossInfo:
        """Trains, and then calls the triggers.

        Args:
          iterations: The number of train steps.
          iterator: An iterator of a dataset; None takes the learner's own.
          parallel_iterations: Has no effect, since each train step needs the weights of
            the one before.

        Returns:
          The `LossInfo` of the last train step. With several replicas scalars are
          means, and quantities of examples are joined, replica after replica.

        Raises:
          ValueError: `iterations` is not positive, or there is no iterator.
          tf.errors.InvalidArgumentError: The loss or its gradients were not finite; the
            weights did not change.
          tf.errors.OutOfRangeError: The dataset has ended.
        """
        del parallel_iterations
        number_checks.check_integer(
            "iterations", iterations, 1, remedy="a run trains at least once"
        )
        self._check_has_iterator(iterator)
        with self._summaries(), self.strategy.scope():
            loss_info = self._train_function(
                tf.constant(iterations, tf.int32), iterator
            )
            for trigger in self.triggers:
                trigger(self.train_step_numpy)
        return loss_info

    def single_train_step(self, iterator: Any) -> tf_agent.LossInfo:
        """Trains once; in a graph, this becomes part of the graph.

        Args:
          iterator: The iterator of the dataset.

        Returns:
          The `LossInfo` of each replica.
        """
        return self._step(self._split(dataset_loop.next_element(iterator)))

    def loss(
        self,
        experience_and_sample_info: tuple[Any, Any] | None = None,
        reduce_op: tf.distribute.ReduceOp = tf.distribute.ReduceOp.MEAN,
    ) -> tf_agent.LossInfo:
        """Returns the loss of experience; changes neither weights nor the train step.

        As in TF-Agents, it calls `after_train_strategy_step_fn`, too, which may update
        priorities.

        Args:
          experience_and_sample_info: The pair; None takes the dataset's next element.
          reduce_op: How the scalars of several replicas are reduced.

        Raises:
          ValueError: There is neither experience nor a dataset.
        """
        if experience_and_sample_info is None:
            self._check_has_iterator(None)
            experience_and_sample_info = self._split(next(self._iterator))
        with self._summaries(), self.strategy.scope():
            return self._loss_function(experience_and_sample_info, reduce_op)

    def _train(self, iterations: tf.Tensor, iterator: Any) -> tf_agent.LossInfo:
        """Does train steps in a graph; returns the last `LossInfo`."""
        # The first step determines the shapes of the loop's variables.
        first = self._step_function(iterator)
        flat = tf.while_loop(
            lambda *_: tf.constant(True),
            lambda *_: tf.nest.flatten(self._step_function(iterator)),
            tf.nest.flatten(first),
            maximum_iterations=iterations - 1,
            parallel_iterations=1,
        )
        return tf.nest.pack_sequence_as(first, flat)

    def _reduced_step(self, iterator: Any) -> tf_agent.LossInfo:
        if iterator is None:
            # It is not an argument, because an argument would lose the way in which
            # this iterator draws in a graph.
            iterator = self._iterator
        return distribution.reduced(self.strategy, self.single_train_step(iterator))

    def _loss(
        self,
        experience_and_sample_info: tuple[Any, Any],
        reduce_op: tf.distribute.ReduceOp,
    ) -> tf_agent.LossInfo:
        loss_info = self._step.loss(experience_and_sample_info)
        return distribution.reduced(self.strategy, loss_info, reduce_op)

    def _split(self, element: Any) -> tuple[Any, Any]:
        """Returns the experience of an element, and its sample info or None."""
        if self._direct_sampling:
            return element, None
        if self._use_reverb_v2:
            return element.data, element.info
        experience, sample_info = element
        return experience, sample_info

    def _check_has_iterator(self, iterator: Any) -> None:
        if iterator is None and self._iterator is None:
            raise ValueError(
                "iterator: got None in a Learner without experience_dataset_fn, "
                "expected the iterator of a dataset; give one of the two."
            )

    def _summaries(self) -> Any:
        return distribution.summaries(
            self.train_summary_writer, self.train_step, self._summary_interval
        )


def _summary_writer(
    root_dir: str | os.PathLike, interval: int
) -> tf.summary.SummaryWriter:
    if not interval:
        return tf.summary.create_noop_writer()
    return tf.summary.create_file_writer(
        os.path.join(root_dir, TRAIN_DIR), flush_millis=10_000
    )


def _one_graph(method: Callable[..., Any]) -> Any:
    return tf.function(trace_counts.of_one_object(method), autograph=False)
