"""The updates of an iteration, on batches that are drawn from a replay buffer.

A prioritized buffer gives the weights of the examples and takes their new priorities.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.train.loops import iteration_transform


class ReplayUpdates:
    """Draws batches and trains an agent with them."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffer_lib.ReplayBuffer,
        train_steps: int,
        batch_size: int,
        num_steps: int | None,
        device: str | None = None,
    ) -> None:
        """Keeps the parts.

        Args:
          agent: The agent.
          replay_buffer: The buffer.
          train_steps: The number of updates in an iteration.
          batch_size: The number of examples in an update.
          num_steps: The number of frames in an example; None for single frames.
          device: The device of the buffer, if it is another than the caller's.
        """
        self._agent = agent
        self._replay_buffer = replay_buffer
        self._train_steps = train_steps
        self._batch_size = batch_size
        self._num_steps = num_steps
        self._device = device

    def at_buffer(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the device scope of the buffer."""
        return tf.device(self._device) if self._device else contextlib.nullcontext()

    def sample(self, seed: tf.Tensor) -> tuple[Any, Any]:
        """Draws a batch by a stateless seed; returns the experience and its info."""
        with self.at_buffer():
            return self._replay_buffer.sample(self._batch_size, self._num_steps, seed)

    def train(
        self,
        transform: iteration_transform.IterationTransform,
        draw: Callable[[tf.Tensor], tuple[Any, Any]],
        done: tf.Tensor,
    ) -> tf.Tensor:
        """Draws a batch for each update; returns the mean loss.

        Args:
          transform: The transform of the iteration.
          draw: Returns experience and its info, drawn after its argument is computed.
          done: An int64 scalar; the first batch is drawn after it is computed.
        """

        def update(
            i: tf.Tensor, loss_sum: tf.Tensor, done: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            del i
            experience, info = draw(done)
            loss = train_on(
                self._agent, self._replay_buffer, experience, info, self.at_buffer
            ).loss
            with tf.control_dependencies([loss]):
                return loss_sum + loss, tf.identity(done)

        start = transform.broadcast(tf.constant(0.0)), done
        loss_sum, _ = transform.repeat(self._train_steps, update, start)
        return self._mean(loss_sum)

    def train_at_once(
        self,
        transform: iteration_transform.IterationTransform,
        draw: Callable[[tf.Tensor], tuple[Any, Any]],
        done: tf.Tensor,
    ) -> tf.Tensor:
        """Draws the batches of all updates together; returns the mean loss.

        Args:
          transform: See `train`.
          draw: See `train`; it returns `train_steps * batch_size` examples.
          done: See `train`.
        """

        def draw_batches(done: tf.Tensor) -> Any:
            experience, _ = draw(done)
            if self._train_steps == 1:
                return experience
            shape = [self._train_steps, self._batch_size]
            return tf.nest.map_structure(
                lambda t: tf.reshape(t, [*shape, *t.shape[1:]]), experience
            )

        def update(i: tf.Tensor, loss_sum: tf.Tensor, batches: Any) -> tuple[tf.Tensor]:
            batch = batches
            if self._train_steps > 1:
                batch = tf.nest.map_structure(lambda t: t[i], batches)
            return (loss_sum + self._agent.train(batch).loss,)

        start = (transform.broadcast(tf.constant(0.0)),)
        batches = transform.apply(draw_batches, done)
        (loss_sum,) = transform.repeat(self._train_steps, update, start, (batches,))
        return self._mean(loss_sum)

    def _mean(self, loss_sum: tf.Tensor) -> tf.Tensor:
        return loss_sum if self._train_steps == 1 else loss_sum / self._train_steps


def train_on(
    agent: tf_agent.TFAgent,
    replay_buffer: replay_buffer_lib.ReplayBuffer | None,
    experience: Any,
    info: Any,
    at_buffer: Callable[
        [], contextlib.AbstractContextManager[Any]
    ] = contextlib.nullcontext,
) -> tf_agent.LossInfo:
    """Trains on a batch; sets its priorities if the buffer has any.

    Args:
      agent: The agent.
      replay_buffer: The buffer that the batch comes from; None if it has no priorities.
      experience: The examples of the batch.
      info: What the buffer knows of them.
      at_buffer: Returns the device scope of the buffer.

    Returns:
      The `LossInfo`, whose loss is computed after the priorities are set.
    """
    if replay_buffer is None or not replay_buffer.is_prioritized:
        return agent.train(experience)
    loss_info = agent.train(experience, weights=info.weights)
    priorities = priorities_of(loss_info, agent)
    # The next draw may read the train step too, for an annealed exponent.
    counted = tf.control_dependencies([agent.train_step_counter.read_value()])
    with counted, at_buffer():
        updated = replay_buffer.update_priorities(info.keys, priorities)
    with tf.control_dependencies([updated]):
        return loss_info._replace(loss=tf.identity(loss_info.loss))


def priorities_of(loss_info: tf_agent.LossInfo, agent: tf_agent.TFAgent) -> tf.Tensor:
    """Returns the absolute TD errors of the examples, or their absolute losses, `[B]`.

    Of errors `[B, T]`, the largest over time is taken.

    Raises:
      ValueError: The agent returns neither.
    """
    for name in ("td_error", "td_loss"):
        errors: Any = getattr(loss_info.extra, name, None)
        if tf.is_tensor(errors) and errors.shape.rank:
            sizes = tf.abs(errors)
            return tf.reduce_max(sizes, axis=list(range(1, errors.shape.rank)))
    raise ValueError(
        f"replay_buffer: got a prioritized one, but {type(agent).__name__} returns "
        "neither td_error nor td_loss of each example in LossInfo.extra, "
        "expected one of them, to compute priorities from. Use a "
        "TFUniformReplayBuffer."
    )
