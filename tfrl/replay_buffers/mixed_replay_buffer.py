"""A replay buffer of new frames, whose samples are mixed with recorded frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.replay_buffers import replay_buffer
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

BufferInfo = replay_buffer.BufferInfo


class MixedReplayBuffer(replay_buffer.ReplayBuffer):
    """Draws a share of each sample from new frames, the rest from recorded ones.

    Frames are added to the buffer of new frames, which alone counts, is cleared, and is
    saved in checkpoints: fill the other one in the same way before a run is resumed.

    A share of 0.5 is the symmetric sampling of RLPD: Ball et al., "Efficient online
    reinforcement learning with offline data" (2023, arXiv:2302.02948), section 4.1.
    """

    def __init__(
        self,
        new: replay_buffer.ReplayBuffer,
        recorded: replay_buffer.ReplayBuffer,
        new_share: float,
        seed: int | None = None,
    ) -> None:
        """Checks the buffers, which must not be prioritized.

        Args:
          new: The buffer of new frames, such as a `TFUniformReplayBuffer`.
          recorded: The buffer of recorded frames, with the same specs.
          new_share: The share of new frames in a sample, in [0, 1]. Of any first `n`
            items of a sample, `floor(n new_share)` are new, so that minibatches that
            are drawn together and divided have the share, too.
          seed: The seed of `get_next`; None follows `tf.random.set_seed`.

        Raises:
          ValueError: The share is out of range, specs differ, or a buffer is
            prioritized or cannot draw from a seed.
        """
        number_checks.check_number("new_share", new_share, 0.0, 1.0, remedy="try 0.5")
        for name, buffer in (("new", new), ("recorded", recorded)):
            if buffer.is_prioritized or not buffer.draws_by_seed:
                raise ValueError(
                    f"{name}: got a {type(buffer).__name__}, expected a buffer without "
                    "priorities that draws from a seed, such as a "
                    "TFUniformReplayBuffer."
                )
        if _forms(recorded.data_spec) != _forms(new.data_spec):
            raise ValueError(
                f"recorded: its data_spec is\n  {recorded.data_spec}\nexpected that of "
                f"the new frames,\n  {new.data_spec}\nMake both with the agent's "
                "collect_data_spec."
            )
        super().__init__(new.data_spec, new.capacity)
        self._new = new
        self._set_untracked("_recorded", recorded)
        self._new_share = new_share
        self._generator = seeds.make_generator(seed)

    @property
    def supports_xla(self) -> bool:
        """Whether XLA can compile the calls."""
        return self._new.supports_xla and self._recorded.supports_xla

    @property
    def calls_python(self) -> bool:
        """Whether samples call Python."""
        return self._new.calls_python or self._recorded.calls_python

    @property
    def draws_by_seed(self) -> bool:
        """Whether `sample` takes a seed: always."""
        return True

    @property
    def batch_size(self) -> int | None:
        """The number of environments that are written together."""
        return self._new.batch_size

    @property
    def max_length(self) -> int | None:
        """The number of new frames of each environment that are kept."""
        return self._new.max_length

    def sample(
        self,
        sample_batch_size: int,
        num_steps: int | None = None,
        seed: int | tf.Tensor | None = None,
    ) -> tuple[Any, BufferInfo]:
        """Returns random windows of both buffers; see `TFUniformReplayBuffer.sample`.

        Args:
          sample_batch_size: The number of windows to draw (`N`).
          num_steps: The number of frames in a window (`T`); None for single frames.
          seed: An integer, or an integer tensor `[2]`; None draws the next one.

        Returns:
          Items `[N, T, ...]` and their `BufferInfo`, in which each buffer counts its
          own ids, and probabilities are those within it.
        """
        number_checks.check_sizes(sample_batch_size=sample_batch_size)
        if seed is None:
            seed = seeds.next_seed(self._generator)
        # 1e-6, since shares such as 0.29 are not binary fractions.
        new = np.floor(np.arange(sample_batch_size + 1) * self._new_share + 1e-6)
        is_new = np.diff(new) > 0
        parts = [
            buffer.sample(int(number), num_steps, own_seed)
            for buffer, number, own_seed in zip(
                (self._new, self._recorded),
                (is_new.sum(), (~is_new).sum()),
                seeds.split_seed(seed, 2),
                strict=True,
            )
            if number
        ]
        if len(parts) == 1:
            return parts[0]
        # The place of each item where the new ones come first.
        order = np.argsort(np.argsort(~is_new, kind="stable"))
        return accelerators.map_moved(
            lambda *each: tf.gather(tf.concat(each, 0), order), *parts
        )

    def _num_frames(self) -> Any:
        return self._new.num_frames()

    def _add_batch(self, items: Any) -> Any:
        return self._new.add_batch(items)

    def _get_next(
        self, sample_batch_size: int | None, num_steps: int | None, time_stacked: bool
    ) -> tuple[Any, BufferInfo]:
        if sample_batch_size is None or not time_stacked:
            raise NotImplementedError(
                "get_next: a MixedReplayBuffer draws batches of stacked frames; give "
                "sample_batch_size, and leave out time_stacked."
            )
        return self.sample(sample_batch_size, num_steps)

    def _clear(self) -> Any:
        return self._new.clear()


def _forms(data_spec: Any) -> Any:
    """Returns the shape and the dtype of each leaf."""
    return tf.nest.map_structure(lambda leaf: (str(leaf.shape), leaf.dtype), data_spec)
