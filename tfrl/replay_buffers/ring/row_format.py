"""`RowFormat`: what a ring buffer stores of a frame, and what it makes of its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Window(NamedTuple):
    """The frames that a buffer was asked for, and how to read any others.

    Attributes:
      ids: The running numbers of the frames in their environments, int64 `[...]`.
      first: The numbers of the windows' first frames, shaped like `ids`, but with one
        frame where windows have a dimension of time.
      newest: The number of the newest frame of every environment, int64 `[]`.
      max_length: How many frames of an environment can be sampled.
      seed: A seed for this draw, int64 `[2]`; None if the frames were not drawn at
        random, but listed.
      read: Returns the stored rows of the frames with other numbers in the same
        environments, `[..., *more]`, given these numbers. It is right for frames
        from `context_frames` before the oldest frame to `newest`.
    """

    ids: tf.Tensor
    first: tf.Tensor
    newest: tf.Tensor
    max_length: int
    seed: tf.Tensor | None
    read: Callable[[tf.Tensor], Any]


class RowFormat:
    """Stores frames as they are; subclasses store something else, or return it.

    A format has no state that checkpoints hold, so one may serve several buffers. Its
    functions are traced into graphs, which XLA may compile.

    Attributes:
      context_frames: How many frames before the first of a window `decode` may read.
        The buffer keeps this many more of each environment than it samples.
      calls_python: Whether `decode` calls functions on the host.
    """

    context_frames: int = 0
    calls_python: bool = False

    def reraise(self) -> contextlib.AbstractContextManager[None]:
        """Returns the context of `ReplayBuffer.reraise`."""
        return contextlib.nullcontext()

    def stored_spec(self, data_spec: Any) -> Any:
        """Returns the nest of specs of a stored row.

        Args:
          data_spec: The specs of a frame, as users write and sample it.

        Raises:
          ValueError: If frames of these specs cannot be stored.
          TypeError: If they are no frames of the kind that is expected.
        """
        return data_spec

    def encode(self, items: Any, new_id: tf.Tensor, previous: Callable[[], Any]) -> Any:
        """Returns the rows to store for one frame of each environment.

        Args:
          items: The frames, `[B, ...]` in the structure of the data spec.
          new_id: The frames' running number, int64 `[]`; 0 in an empty buffer.
          previous: Returns the rows `[B, ...]` of the frames before, which mean nothing
            if `new_id` is 0.

        Returns:
          Tensors `[B, ...]` in the structure of the stored spec.
        """
        del new_id, previous
        return items

    def decode(self, window: Window) -> Any:
        """Returns the frames of a window, `[..., *spec shape]` like its `ids`."""
        return window.read(window.ids)
