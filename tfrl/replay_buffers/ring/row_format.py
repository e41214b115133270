"""`RowFormat`, which converts frames to the rows of a ring buffer and back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Window(NamedTuple):
    """The frames to return, and a function that reads other frames.

    Attributes:
      ids: The consecutive numbers of the frames in their environments, int64 `[...]`.
      first: The numbers of the windows' first frames, shaped like `ids`, but with one
        frame where windows have a dimension of time.
      newest: The number of the newest frame of every environment, int64 `[]`.
      max_length: The number of frames of an environment that can be sampled.
      seed: A seed for this draw, int64 `[2]`; None if the frames were not drawn at
        random.
      read: Returns the stored rows of the frames with other numbers in the same
        environments, `[..., *more]`, given these numbers. It is valid for frames from
        `context_frames` before the oldest frame to `newest`.
    """

    ids: tf.Tensor
    first: tf.Tensor
    newest: tf.Tensor
    max_length: int
    seed: tf.Tensor | None
    read: Callable[[tf.Tensor], Any]


class RowFormat:
    """Stores frames unchanged; subclasses store or return a different form.

    A format has no state that checkpoints hold, so one may serve several buffers. Its
    functions are traced into graphs, which XLA may compile.

    Attributes:
      context_frames: The number of frames before a window that `decode` may read. The
        buffer keeps this many frames of each environment beyond the frames that it
        samples.
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
          data_spec: The specs of a frame in the form that users write and sample.

        Raises:
          ValueError: If frames of these specs cannot be stored.
          TypeError: If the frames are not of the expected kind.
        """
        return data_spec

    def check_collected(self, gather_all: Callable[[], Any]) -> None:
        """Checks the first frames of a run, which `gather_all()` returns.

        Raises:
          ValueError: If the format does not fit what was collected.
        """

    def encode(self, items: Any, new_id: tf.Tensor, previous: Callable[[], Any]) -> Any:
        """Returns the rows to store for one frame of each environment.

        Args:
          items: The frames, `[B, ...]` in the structure of the data spec.
          new_id: The consecutive number of the frames, int64 `[]`; 0 in an empty
            buffer.
          previous: Returns the rows `[B, ...]` of the frames before, which have no
            meaning if `new_id` is 0.

        Returns:
          Tensors `[B, ...]` in the structure of the stored spec.
        """
        del new_id, previous
        return items

    def decode(self, window: Window) -> Any:
        """Returns the frames of a window, `[..., *spec shape]` like its `ids`."""
        return window.read(window.ids)
