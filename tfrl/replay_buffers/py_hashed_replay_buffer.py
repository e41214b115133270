"""A ring of trajectories in NumPy arrays that keeps each image of a stack once.

A stack of the last four images shares three of them with the next stack, so a buffer of
stacks holds every image four times. The buffer of this module stores the images of a
stack one by one, and each distinct image once.
"""

from __future__ import annotations

import collections
import hashlib
import logging
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.replay_buffers import py_uniform_replay_buffer
from tfrl.savers import serialization
from tfrl.specs import array_spec
from tfrl.trajectories import trajectory
from tfrl.typing import types

_LOGGER = logging.getLogger(__name__)


class FrameBuffer(tf.train.experimental.PythonState):
    """Stores each distinct array once, under a key.

    Keys come from the contents, by a hash that is the same in every process; arrays
    that differ never share a key. `len` is the number of different arrays. The buffer
    is not thread-safe. `tf.train.Checkpoint` saves the contents.
    """

    def __init__(self) -> None:
        """Creates the buffer, without arrays."""
        self._frames: dict[int, np.ndarray] = {}
        self._counts: collections.Counter[int] = collections.Counter()

    def __len__(self) -> int:
        return len(self._frames)

    def add_frame(self, frame: np.ndarray) -> int:
        """Adds an array of any shape and dtype; returns its key, an int64."""
        # This is a copy, since a view would keep the whole stack in memory.
        frame = np.array(frame, order="C")
        digest = hashlib.blake2b(frame.tobytes(), digest_size=8).digest()
        key = int.from_bytes(digest, "little", signed=True)
        while not _equal(self._frames.setdefault(key, frame), frame):
            key = (key + 1 + 2**63) % 2**64 - 2**63
        self._counts[key] += 1
        return key

    def compress(self, observation: np.ndarray, split_axis: int = -1) -> np.ndarray:
        """Adds the slices of an array along an axis; returns their keys, int64 `[n]`.

        A slice keeps the axis, with size 1: `[84, 84, 4]` gives four `[84, 84, 1]`.
        """
        slices = np.split(observation, observation.shape[split_axis], split_axis)
        return np.array([self.add_frame(frame) for frame in slices], np.int64)

    def decompress(self, observation: np.ndarray, split_axis: int = -1) -> np.ndarray:
        """Returns the array from which `compress` made these keys.

        Args:
          observation: The keys, int64 `[..., n]`.
          split_axis: The axis that `compress` split; negative if there are outer
            dimensions.

        Raises:
          KeyError: If this buffer has no such key.
        """
        keys = np.asarray(observation)
        arrays = [
            np.concatenate([self._frames[int(key)] for key in row], split_axis)
            for row in keys.reshape([-1, keys.shape[-1]])
        ]
        return np.stack(arrays).reshape([*keys.shape[:-1], *arrays[0].shape])

    def on_delete(self, observation: np.ndarray, split_axis: int = -1) -> None:
        """Drops one reference to each key, and removes arrays without references.

        Args:
          observation: The keys, int64 `[n]`.
          split_axis: Ignored.
        """
        del split_axis
        for key in map(int, observation):
            self._counts[key] -= 1
            if self._counts[key] <= 0:
                del self._counts[key], self._frames[key]

    def clear(self) -> None:
        """Removes all arrays."""
        self._frames.clear()
        self._counts.clear()

    def serialize(self) -> bytes:
        """Returns the contents as the bytes of an npz file."""
        groups: dict[Any, list[int]] = {}
        for key, frame in self._frames.items():
            groups.setdefault((frame.shape, frame.dtype.str), []).append(key)
        arrays = {}
        for i, keys in enumerate(groups.values()):
            arrays[f"keys{i}"] = np.array(keys, np.int64)
            arrays[f"counts{i}"] = np.array([self._counts[key] for key in keys])
            arrays[f"frames{i}"] = np.stack([self._frames[key] for key in keys])
        return serialization.pack_arrays(arrays)

    def deserialize(self, string_value: bytes) -> None:
        """Sets the contents from the bytes of an npz file."""
        self.clear()
        arrays = serialization.unpack_arrays(string_value)
        for i in range(len(arrays) // 3):
            keys = arrays[f"keys{i}"].tolist()
            self._counts.update(
                dict(zip(keys, arrays[f"counts{i}"].tolist(), strict=True))
            )
            for key, frame in zip(keys, arrays[f"frames{i}"], strict=True):
                self._frames[key] = frame.copy()


class PyHashedReplayBuffer(py_uniform_replay_buffer.PyUniformReplayBuffer):
    """A `PyUniformReplayBuffer` of trajectories that stores each image once.

    The observation is split along its last axis, as for the images `[84, 84, 4]` of
    `FrameStack`, and equal slices are stored once, even if they come from different
    frames.
    """

    def __init__(
        self,
        data_spec: types.NestedArraySpec,
        capacity: int,
        log_interval: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the storage.

        Args:
          data_spec: A `Trajectory` of `ArraySpec`s, whose observation is one array of
            at least one dimension.
          capacity: The number of frames to keep.
          log_interval: The number of writes from one log message to the next; the
            message gives the number of different slices that are stored. None logs
            nothing.
          seed: The seed of the sampling; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `data_spec` is not such a `Trajectory`, or `capacity` is not
            positive.
        """
        if not isinstance(data_spec, trajectory.Trajectory):
            raise ValueError(
                f"data_spec: got {data_spec!r}, expected a Trajectory of ArraySpecs. "
                "Store other nests in a PyUniformReplayBuffer."
            )
        observation = data_spec.observation
        if not isinstance(observation, array_spec.ArraySpec) or not observation.shape:
            raise ValueError(
                f"data_spec at 'observation': got {observation!r}, expected one "
                "ArraySpec of at least one dimension, to be cut up along the last. "
                "Store other observations in a PyUniformReplayBuffer."
            )
        self._frame_buffer = FrameBuffer()
        self._log_interval = log_interval
        super().__init__(data_spec, capacity, seed=seed)

    def _encoded_data_spec(self) -> Any:
        observation = self._data_spec.observation
        keys = array_spec.ArraySpec(observation.shape[-1:], np.int64)
        return self._data_spec._replace(observation=keys)

    def _encode(self, item: Any) -> Any:
        if self._log_interval and self._state.item_count % self._log_interval == 0:
            _LOGGER.info(
                "%d frames are stored as %d different slices.",
                self.size,
                len(self._frame_buffer),
            )
        return item._replace(observation=self._frame_buffer.compress(item.observation))

    def _decode(self, items: Any) -> Any:
        if items.observation.size == 0:
            spec = self._data_spec.observation
            shape = [*items.observation.shape[:-1], *spec.shape]
            return items._replace(observation=np.zeros(shape, spec.dtype))
        return items._replace(
            observation=self._frame_buffer.decompress(items.observation)
        )

    def _on_delete(self, encoded_item: Any) -> None:
        self._frame_buffer.on_delete(encoded_item.observation)

    def _clear(self) -> None:
        super()._clear()
        with self._lock:
            self._frame_buffer.clear()


def _equal(frame: np.ndarray, other: np.ndarray) -> bool:
    """Returns whether two arrays have the same dtype, shape and bits."""
    return frame is other or (
        (frame.shape, frame.dtype) == (other.shape, other.dtype)
        and frame.tobytes() == other.tobytes()
    )
