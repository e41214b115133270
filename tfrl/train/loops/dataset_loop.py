"""The training loop of agents that learn from a dataset, and its train step.

```python
loop = DatasetLoop(agent, lambda: replay_buffer.as_dataset(64, 2), replay_buffer)
train.Run(loop, train.RunDirectory("run", {}), num_iterations=1_000).run()
```

`train.Learner` uses the same train step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import (
    accelerators,
    fast_dataset,
    stored_values,
    trace_counts,
)
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.train import distribution
from tfrl.train.loops import loop_checks, placement, replay_updates, training_loop
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.typing import types


# Makes the pairs `(experience, info)` of the next updates from their elements.
PrepareFn = Callable[[Sequence[Any]], Sequence[tuple[Any, Any]]]


class CollectedElsewhere(Protocol):
    """The work of environments in other processes, an object that checkpoints save."""

    def take(self) -> None:
        """Takes the new counts; called after each call of the loop."""

    def counters(self) -> Mapping[str, Any]:
        """Returns the counters of the environments, fields of an `IterationInfo`."""


class DatasetLoop(training_loop.TrainingLoop):
    """Trains on the elements of a dataset, without an environment.

    An iteration is an update on the next element. After the update, the element's
    frames are added to the statistics of the agent's normalizers. A frame counts as
    often as the dataset gives it, so a replayed frame counts more than once.

    The log's numbers of a batch are computed on the last trained batch.
    """

    # The strategy, which a subclass sets; None takes the current strategy.
    _strategy: Any = None

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        experience_dataset_fn: Callable[..., tf.data.Dataset],
        replay_buffer: replay_buffer_lib.ReplayBuffer | None = None,
        *,
        update_normalizers: bool = True,
        compiled_updates: int | None = None,
        priority_fn: replay_updates.PriorityFn | None = None,
        prepare_fn: PrepareFn | None = None,
        collected: CollectedElsewhere | None = None,
    ) -> None:
        """Creates the loop.

        Args:
          agent: The agent.
          experience_dataset_fn: Makes the dataset. Its elements are pairs
            `(experience, sample_info)`, as in `ReplayBuffer.as_dataset`, or begin with
            these if there is a `prepare_fn`.
          replay_buffer: The buffer that the dataset samples. If it is prioritized, each
            update sets the priorities of its batch. Checkpoints hold the buffer, and
            its exceptions are raised as they are. None if there is no buffer, or if the
            loop should do none of this.
          update_normalizers: Whether the experience is added to the statistics of the
            agent's normalizers; False if the collecting program calls
            `agent.update_normalizers`.
          compiled_updates: The number of successive updates that XLA compiles into one
            program, which takes a few seconds; small networks then train several times
            faster. The results agree with the plain graph's results to float32's
            accuracy. The remaining updates of a call run in the plain graph. If XLA
            cannot compile the updates, there is a warning, and all run in the plain
            graph. None compiles nothing.
          priority_fn: See `OffPolicyLoop`.
          prepare_fn: Makes the pairs to train on from the elements of the next updates,
            in their order, in a graph; None if the elements are these pairs.
          collected: The steps and episodes of environments in other processes, which
            checkpoints hold; None counts none.

        Raises:
          ValueError: The agent's reward normalizer follows the steps of environments,
            or `compiled_updates` is not positive.
          TypeError: A part is of another kind.
        """
        number_checks.check_sizes(optional=True, compiled_updates=compiled_updates)
        loop_checks.check_agent(agent)
        if replay_buffer is not None:
            loop_checks.check_replay_buffer(replay_buffer)
        # The dataset draws all random numbers.
        placed = placement.placement_of(agent.variables(), calls_python=False)
        super().__init__(agent, replay_buffer, 0, False, placed)
        self._strategy = self._strategy or tf.distribute.get_strategy()
        self._prepare_fn = prepare_fn or (lambda elements: elements)
        self._collected: Any = collected
        self._iterator, element_spec = self._distributed(experience_dataset_fn)
        self._last_batch = _LastBatch(element_spec[0])
        self._update = DatasetStep(
            agent,
            replay_buffer=replay_buffer,
            update_normalizers=update_normalizers,
            strategy=self._strategy,
            priority_fn=priority_fn,
        )
        self._compiled_updates = compiled_updates
        if compiled_updates is None:
            return
        obstacle = self._obstacle_to_compilation(placed)
        # The loop then makes the checks after each call that XLA leaves out.
        self._jit_compile = loop_checks.resolve_compilation("auto", obstacle)
        self._update_in_program = DatasetStep(
            agent, update_normalizers=update_normalizers
        )
        self._program: Any = tf.function(
            trace_counts.of_one_object(self._train_on_all),
            autograph=False,
            jit_compile=True,
        )

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save so that a run can be resumed, by name."""
        items = super().checkpoint_items(include_replay_buffer)
        if self._collected is not None:
            items["collected"] = self._collected
        return items

    def info(self, loss: float = float("nan")) -> training_loop.IterationInfo:
        """Returns the counters, with the steps and episodes of other processes."""
        info = super().info(loss)
        if self._collected is None:
            return info
        return info._replace(**self._collected.counters())

    def replay_size(self) -> int | None:
        """Returns the number of frames in the buffer, or of items in a server's."""
        if self._replay_buffer is None:
            return None
        return int(self._replay_buffer.num_frames())

    def can_draw_for_log(self) -> bool:
        """Whether there was an update in this process."""
        return bool(self._last_batch.is_kept)

    def draw_for_log(self) -> types.NestedTensor | None:
        """Returns the last batch that was trained on."""
        return self._last_batch.read()

    def _obstacle_to_compilation(self, placed: placement.Placement) -> str | None:
        """Returns why XLA cannot compile updates, and a remedy; None if it can."""
        buffer = self._replay_buffer
        if buffer is not None and buffer.is_prioritized:
            return (
                f"a prioritized {type(buffer).__name__}, expected a uniform one, since "
                "each update changes priorities; leave compiled_updates=None."
            )
        spec = self._iterator.element_spec[0]
        if not all(leaf.shape.is_fully_defined() for leaf in tf.nest.flatten(spec)):
            return (
                f"elements of the shapes {spec}, expected fully defined ones; batch "
                "the dataset with drop_remainder=True."
            )
        missing = loop_checks.obstacle_without_environment(None)
        return missing or loop_checks.misplaced(self._agent, [], placed)

    def _one_call(
        self, most_iterations: int, loss_sum: tf.Tensor
    ) -> tuple[int, tf.Tensor]:
        result = super()._one_call(most_iterations, loss_sum)
        if self._collected is not None:
            self._collected.take()
        return result

    def _do_iterations(
        self, position: tuple[Any, ...], num_iterations: tf.Tensor, loss_sum: tf.Tensor
    ) -> tuple[tuple[Any, ...], tf.Tensor]:
        """Runs whole programs of updates, and then the remaining updates."""
        size = self._compiled_updates
        if size is None or not self._jit_compile:
            return super()._do_iterations(position, num_iterations, loss_sum)
        num_programs = tf.cast(num_iterations // size, tf.int32)
        with accelerators.graph_for(self._placement.device):
            _, loss_sum = accelerators.while_loop(
                lambda i, _: i < num_programs,
                lambda i, loss_sum: (i + 1, loss_sum + self._run_program(size)),
                (tf.constant(0), loss_sum),
                parallel_iterations=1,
            )
        return super()._do_iterations(position, num_iterations % size, loss_sum)

    def _run_program(self, num_updates: int) -> tf.Tensor:
        """Draws elements and trains on each; returns the sum of losses, float64."""
        elements = [next_element(self._iterator) for _ in range(num_updates)]
        batches = [element[0] for element in self._prepare_fn(elements)]
        self._last_batch.keep(batches[-1])
        return self._program(
            tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *batches)
        )

    def _train_on_all(self, batches: Any) -> tf.Tensor:
        """Trains on each of the batches `[n, ...]`; returns the sum of losses."""

        def train(i: tf.Tensor, loss_sum: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            batch = accelerators.map_moved(lambda leaf: leaf[i], batches)
            loss = self._update_in_program((batch, ())).loss
            return i + 1, loss_sum + tf.cast(loss, tf.float64)

        number = tf.nest.flatten(batches)[0].shape[0]
        start = tf.constant(0), tf.constant(0.0, tf.float64)
        return tf.while_loop(lambda i, _: i < number, train, start)[1]

    def _advance(self, position: tuple[Any, ...]) -> tuple[tuple[Any, ...], tf.Tensor]:
        [element] = self._prepare_fn([next_element(self._iterator)])
        loss_info = self._update(element)
        self._last_batch.keep(self._first_local(element[0]))
        return position, self._first_local(loss_info.loss)

    def _distributed(self, experience_dataset_fn: Any) -> tuple[Any, Any]:
        """Returns the iterator of the dataset, and the spec of its elements."""
        iterator: Any = iter(experience_dataset_fn())
        return iterator, iterator.element_spec

    def _first_local(self, nest: Any) -> Any:
        """Returns the value of the first replica of this process."""
        local = self._strategy.experimental_local_results
        return tf.nest.map_structure(lambda value: local(value)[0], nest)


class DatasetStep:
    """A train step on an element `(experience, info)`, on one device or on replicas.

    After the update, the frames are added to the statistics of the agent's normalizers,
    unless the agent's `train` adds them.
    """

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        after: Callable[..., object] | None = None,
        *,
        replay_buffer: replay_buffer_lib.ReplayBuffer | None = None,
        use_kwargs: bool = False,
        update_normalizers: bool = True,
        train_settings: Mapping[str, Any] | None = None,
        strategy: tf.distribute.Strategy | None = None,
        options: tf.distribute.RunOptions | None = None,
        priority_fn: replay_updates.PriorityFn | None = None,
    ) -> None:
        """Stores the arguments.

        Args:
          agent: The agent.
          after: Called in each replica with the element and the `LossInfo`.
          replay_buffer: A buffer whose priorities are updated if it has any.
          use_kwargs: Whether experience is a dictionary of the keyword arguments of
            `agent.train`.
          update_normalizers: Whether the frames are added to the normalizers'
            statistics.
          train_settings: Further keyword arguments of `agent.train`.
          strategy: The strategy of the replicas; None takes the current one.
          options: See `tf.distribute.Strategy.run`.
          priority_fn: See `OffPolicyLoop`.

        Raises:
          ValueError: The agent's reward normalizer follows the steps of environments.
        """
        self._agent = agent
        self._after = after
        self._replay_buffer = replay_buffer
        self._use_kwargs = use_kwargs
        self._train_settings = dict(train_settings or {})
        self._strategy = strategy or tf.distribute.get_strategy()
        self._options = options
        self._priority_fn = priority_fn
        self._counts_frames = update_normalizers and _counts_frames(agent)

    def __call__(self, element: tuple[Any, Any]) -> tf_agent.LossInfo:
        """Trains; returns the `LossInfo` of each replica."""
        loss_info = self._on_replicas(self._train, element)
        if self._counts_frames:
            frames = element[0]["experience"] if self._use_kwargs else element[0]
            _check_frames(frames)
            # This comes after the checks of the update, which may stop it.
            losses = self._strategy.experimental_local_results(loss_info.loss)
            with tf.control_dependencies(losses):
                self._agent.update_normalizers(
                    distribution.reduced(self._strategy, frames)
                )
        return loss_info

    def loss(self, element: tuple[Any, Any]) -> tf_agent.LossInfo:
        """Returns the `LossInfo` of each replica without an update."""
        return self._on_replicas(
            lambda experience, _: self._apply(self._agent.loss, experience), element
        )

    def _train(self, experience: Any, info: Any) -> tf_agent.LossInfo:
        if self._replay_buffer is None:
            train = functools.partial(self._agent.train, **self._train_settings)
            return self._apply(train, experience)
        return replay_updates.train_on(
            self._agent,
            self._replay_buffer,
            experience,
            info,
            priority_fn=self._priority_fn,
        )

    def _apply(self, method: Callable[..., Any], experience: Any) -> tf_agent.LossInfo:
        return method(**experience) if self._use_kwargs else method(experience)

    def _on_replicas(self, function: Callable[..., Any], element: Any) -> Any:
        def call(*element: Any) -> tf_agent.LossInfo:
            loss_info = function(*element)
            if self._after is not None:
                self._after(element, loss_info)
            return loss_info

        return self._strategy.run(call, args=element, options=self._options)


class _LastBatch(tf.Module):
    """Variables that hold the experience trained on last, for the log."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self._stored = stored_values.StoredNest(spec)
        self.is_kept = tf.Variable(False, trainable=False)

    def keep(self, batch: Any) -> None:
        self._stored.assign(batch)
        self.is_kept.assign(True)

    def read(self) -> Any:
        return self._stored.read()


def next_element(iterator: Any) -> Any:
    """Returns the next element, in a graph without a change of threads."""
    is_plain = isinstance(iterator, tf.data.Iterator)
    if tf.executing_eagerly() or not is_plain or fast_dataset.draws_in_graph(iterator):
        return next(iterator)
    return fast_dataset.next_in_graph(iterator)


def _counts_frames(agent: tf_agent.TFAgent) -> bool:
    """Whether an agent has normalizers whose statistics `train` does not update."""
    if getattr(agent, "update_normalizers_in_train", False):
        return False
    normalizer = agent.reward_normalizer
    if normalizer is not None and normalizer.batch_size is not None:
        raise ValueError(
            f"agent.reward_normalizer: got one of batch_size={normalizer.batch_size}, "
            "which follows the steps of that many environments, expected one of "
            "batch_size=None with gamma=0, because a dataset gives sequences in any "
            "order; or set update_normalizers=False, and pass "
            "agent.update_normalizers to the driver as an observer."
        )
    return normalizer is not None or agent.observation_normalizer is not None


def _check_frames(experience: Any) -> None:
    if not hasattr(experience, "next_step_type"):
        raise TypeError(
            f"experience: got a {type(experience).__name__}, expected a Trajectory, "
            "whose frames move the statistics of the agent's normalizers; set "
            "update_normalizers=False, and pass agent.update_normalizers to the "
            "driver as an observer."
        )
