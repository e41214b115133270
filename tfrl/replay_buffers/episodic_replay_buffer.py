"""A replay buffer of whole episodes of any length, or windows of their frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.replay_buffers import batch_check, episodic_store, replay_buffer
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

BufferInfo = replay_buffer.BufferInfo


class Episodes(NamedTuple):
    """Episodes that were read from a buffer, or that will be added to a buffer.

    Attributes:
      length: The numbers of frames, int64 `[N]`.
      completed: 1 for an episode that has ended, else 0; uint8 `[N]`.
      tensor_lists: TensorLists, variant `[N]`, in the structure of the data spec.
    """

    length: Any
    completed: Any
    tensor_lists: Any


class EpisodicReplayBuffer(replay_buffer.ReplayBuffer):
    """Stores episodes; samples whole episodes, or windows of successive frames.

    Writers carry the numbers of the episodes that they write to: `create_episode_ids`
    returns the first ids, and every write returns the ids for the next write.
    `StatefulEpisodicReplayBuffer` keeps the ids for a driver. Writing to an episode
    that has been replaced in the meantime does nothing. Several writers must take
    turns.
    """

    def __init__(
        self,
        data_spec: types.NestedTensorSpec,
        capacity: int = 1000,
        completed_only: bool = False,
        buffer_size: int = 8,
        name_prefix: str = "EpisodicReplayBuffer",
        device: str | None = "cpu:*",
        seed: int | None = None,
        begin_episode_fn: Callable[[Any], Any] | None = None,
        end_episode_fn: Callable[[Any], Any] | None = None,
        dataset_drop_remainder: bool = False,
        dataset_window_shift: int | None = None,
    ) -> None:
        """Creates the storage.

        Args:
          data_spec: A nest of `tf.TensorSpec`s of one frame.
          capacity: The number of episodes to keep.
          completed_only: Whether only episodes that have ended are sampled.
          buffer_size: Has no effect: each element of a dataset draws its own episode.
          name_prefix: The prefix of the variables' names.
          device: The device of the variables; None leaves it to TensorFlow.
          seed: The seed of the sampling; None follows `tf.random.set_seed`.
          begin_episode_fn: Takes the items being written, and returns whether a new
            episode begins: bool `[]` or `[N]` for `add_batch` and `extend_episodes`,
            `[]` for `add_sequence`. By default `items.is_first()`.
          end_episode_fn: A function like `begin_episode_fn` for the ends of episodes;
            by default `items.is_last()`.
          dataset_drop_remainder: Whether a deterministic pass drops batches and windows
            that are not full.
          dataset_window_shift: The number of frames from the start of one window to the
            start of the next in a deterministic pass; None takes `num_steps`, so that
            windows do not overlap.

        Raises:
          ValueError: If `capacity` is not positive, or a spec cannot be stored.
          TypeError: If an episode function cannot be called.
        """
        del buffer_size
        number_checks.check_sizes(capacity=capacity)
        number_checks.check_sizes(
            optional=True, dataset_window_shift=dataset_window_shift
        )
        super().__init__(data_spec, int(capacity), stateful_dataset=True)
        self._name_prefix = name_prefix
        self._device = device
        self._begin_episode_fn = _episode_fn(
            "begin_episode_fn", begin_episode_fn, "is_first"
        )
        self._end_episode_fn = _episode_fn("end_episode_fn", end_episode_fn, "is_last")
        self._drop_remainder = dataset_drop_remainder
        self._window_shift = dataset_window_shift
        self._check_batch = batch_check.BatchCheck(data_spec, None)
        with replay_buffer.placed(self._device), tf.name_scope(name_prefix):
            self._store = episodic_store.EpisodicStore(data_spec, self._capacity)
            self._reader = episodic_store.EpisodicReader(
                data_spec,
                self._store,
                completed_only,
                seeds.make_generator(seed),
                device,
            )

    @property
    def num_writes(self) -> tf.Variable:
        """The number of writes that have added frames, an int64 variable."""
        return self._store.num_writes

    @property
    def name_prefix(self) -> str:
        """The prefix of the variables' names."""
        return self._name_prefix

    def create_episode_ids(self, num_episodes: Any = None) -> tf.Tensor:
        """Returns the ids for the first write: int64 `[num_episodes]`, or `[]` if None.

        Raises:
          ValueError: If `num_episodes` is larger than the capacity.
        """
        if not tf.is_tensor(num_episodes) and num_episodes is not None:
            number_checks.check_sizes(optional=True, num_episodes=num_episodes)
            if num_episodes > self._capacity:
                raise ValueError(
                    f"num_episodes: got {num_episodes}, but the buffer holds only "
                    f"capacity={self._capacity} episodes. Make it larger."
                )
        shape = [] if num_episodes is None else [num_episodes]
        return tf.fill(shape, tf.constant(episodic_store.NO_EPISODE, tf.int64))

    def add_batch(self, items: Any, episode_ids: Any = None) -> tf.Tensor:
        """Adds one frame to each of `N` episodes.

        Args:
          items: A nest like the data spec, each leaf `[N, *spec shape]`.
          episode_ids: The episodes to add to, int64 `[N]`.

        Returns:
          The episodes' ids, int64 `[N]`, with a new id where an episode began.

        Raises:
          ValueError: If the items do not fit the data spec, or the ids are not a
            vector.
        """
        items = self._check_batch(items)
        episode_ids = _checked_ids(episode_ids, rank=1)
        with replay_buffer.placed(self._device), tf.name_scope("add_batch"):
            begin = self._begin_episode_fn(items)
            end = tf.broadcast_to(self._end_episode_fn(items), tf.shape(episode_ids))
            episode_ids = self._store.begin(episode_ids, begin)
            rows, held = self._store.writable(episode_ids)
            written = self._store.table.add(rows, _gather(items, held))
            done = self._store.publish(written, rows, 1, tf.gather(end, held))
            return _after(done, episode_ids)

    def add_sequence(self, items: Any, episode_id: Any) -> tf.Tensor:
        """Adds successive frames to one episode.

        Args:
          items: A nest like the data spec, each leaf `[T, *spec shape]`.
          episode_id: The episode to add to, int64 `[]`.

        Returns:
          The episode's id, int64 `[]`; a new id if the sequence begins an episode.

        Raises:
          ValueError: If the items do not fit the data spec, or the id or the result of
            an episode function is not a scalar.
        """
        items = self._check_batch(items)
        episode_ids = _checked_ids(episode_id, rank=0)[tf.newaxis]
        begin = _scalar("begin_episode_fn", self._begin_episode_fn(items))
        end = _scalar("end_episode_fn", self._end_episode_fn(items))
        with replay_buffer.placed(self._device), tf.name_scope("add_sequence"):
            number = tf.shape(tf.nest.flatten(items)[0], tf.int64)[0]
            episode_ids = self._store.begin(episode_ids, begin)
            rows, held = self._store.writable(episode_ids)
            lists = _gather(self._store.table.to_lists(items), held)
            written = self._store.table.extend(rows, lists)
            end = tf.broadcast_to(end, tf.shape(rows))
            done = self._store.publish(written, rows, number, end)
            return _after(done, episode_ids)[0]

    def extend_episodes(
        self, episode_ids: Any, episode_ids_indices: Any, episodes: Episodes
    ) -> tf.Tensor:
        """Adds the frames of `episodes` to some of the writer's episodes.

        Args:
          episode_ids: All the episodes of this writer, int64 `[M]`.
          episode_ids_indices: The indices in `episode_ids` of the episodes to extend,
            `[N]`.
          episodes: The `N` episodes to add. `begin_episode_fn` is called with them.

        Returns:
          The writer's episode ids, int64 `[M]`, with a new id where an episode began.
        """
        episode_ids = _checked_ids(episode_ids, rank=1)
        indices = tf.convert_to_tensor(episode_ids_indices)
        begin = self._begin_episode_fn(episodes)
        with replay_buffer.placed(self._device), tf.name_scope("extend_episodes"):
            begun = self._store.begin(tf.gather(episode_ids, indices), begin)
            rows, held = self._store.writable(begun)
            added = _gather(episodes, held)
            written = self._store.table.extend(rows, added.tensor_lists)
            end = tf.cast(added.completed, tf.bool)
            done = self._store.publish(written, rows, added.length, end)
            begun = _after(done, begun)
            return tf.tensor_scatter_nd_update(episode_ids, indices[:, None], begun)

    def extract(self, locations: Any, clear_data: bool = False) -> Episodes:
        """Returns the episodes in rows `locations`; `clear_data` empties the rows."""
        rows = tf.cast(locations, tf.int64)
        with replay_buffer.placed(self._device), tf.name_scope("extract"):
            episodes = Episodes(
                tf.gather(self._store.lengths, rows),
                tf.gather(self._store.completed, rows),
                self._store.table.get_episode_lists(rows),
            )
            if not clear_data:
                return episodes
            with tf.control_dependencies(tf.nest.flatten(episodes)):
                return _after(self._store.empty(rows), episodes)

    def get_valid_ids_mask(self, episode_ids: Any) -> tf.Tensor:
        """Returns whether each of the episodes is still in the buffer, bool `[N]`."""
        return self._store.is_held(tf.convert_to_tensor(episode_ids, tf.int64))

    def _num_frames(self) -> tf.Tensor:
        return tf.reduce_sum(self._store.lengths)

    def _get_next(
        self, sample_batch_size: int | None, num_steps: int | None, time_stacked: bool
    ) -> tuple[Any, BufferInfo]:
        if sample_batch_size is not None or num_steps is not None or not time_stacked:
            raise NotImplementedError(
                "EpisodicReplayBuffer.get_next returns one whole episode and takes no "
                "arguments. Use as_dataset for windows and batches."
            )
        return self._reader.episode()

    def _as_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        return self._dataset(
            self._reader.samples(num_steps, num_parallel_calls),
            sample_batch_size,
            num_steps,
            sequence_preprocess_fn,
            drop_remainder=True,
        )

    def _single_deterministic_pass_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        """Iterates over the episodes, the oldest first, and over the windows of each.

        Windows do not cross from one episode to the next. The last window of an episode
        may be shorter, unless windows are batched.
        """
        full = self._drop_remainder or sample_batch_size is not None
        return self._dataset(
            self._reader.single_pass(
                num_steps, self._window_shift or num_steps, full, num_parallel_calls
            ),
            sample_batch_size,
            num_steps,
            sequence_preprocess_fn,
            drop_remainder=self._drop_remainder,
        )

    def _dataset(
        self,
        dataset: tf.data.Dataset,
        sample_batch_size: int | None,
        num_steps: int | None,
        preprocess: Callable[[Any], Any] | None,
        drop_remainder: bool,
    ) -> tf.data.Dataset:
        if sample_batch_size is not None:
            if num_steps is None:
                raise ValueError(
                    f"sample_batch_size: got {sample_batch_size} with num_steps=None, "
                    "but whole episodes differ in length and cannot be batched. Set "
                    "num_steps, or leave sample_batch_size out and batch the dataset's "
                    "episodes by padded_batch or ragged_batch."
                )
            dataset = dataset.batch(sample_batch_size, drop_remainder=drop_remainder)
        if preprocess is not None:
            dataset = dataset.map(lambda items, info: (preprocess(items), info))
        return dataset

    def _gather_all(self) -> Any:
        """Returns all frames of all episodes one after another, `[1, T, ...]`."""
        return self._reader.gather_all()

    def _clear(self, clear_all_variables: bool = False) -> None:
        """Empties all episodes; their ids stay valid unless `clear_all_variables`."""
        self._store.clear(forget_ids=clear_all_variables)


class StatefulEpisodicReplayBuffer(replay_buffer.ReplayBuffer):
    """An `EpisodicReplayBuffer` that keeps the episode ids of one writer."""

    def __init__(
        self, replay_buffer: EpisodicReplayBuffer, num_episodes: int | None = None
    ) -> None:
        """Creates the variable of the episode ids.

        Args:
          replay_buffer: The buffer that stores the episodes.
          num_episodes: The number of episodes that are written at once, usually the
            environment's batch size; None for one episode, written by `add_sequence`.

        Raises:
          TypeError: If `replay_buffer` is not an `EpisodicReplayBuffer`.
          ValueError: If `num_episodes` is larger than the capacity.
        """
        if not isinstance(replay_buffer, EpisodicReplayBuffer):
            raise TypeError(
                f"replay_buffer: got {replay_buffer!r}, expected an "
                "EpisodicReplayBuffer. Make one and pass it."
            )
        super().__init__(replay_buffer.data_spec, replay_buffer.capacity, True)
        self._replay_buffer = replay_buffer
        self._episode_ids = tf.Variable(
            replay_buffer.create_episode_ids(num_episodes),
            trainable=False,
            name="episode_ids",
        )

    @property
    def episode_ids(self) -> tf.Variable:
        """The ids of the episodes that are being written, int64 `[num_episodes]`."""
        return self._episode_ids

    def add_sequence(self, items: Any) -> tf.Tensor:
        """Adds frames `[T, ...]` to the episode; returns its id."""
        return self._remember(
            self._replay_buffer.add_sequence(items, self._episode_ids.read_value())
        )

    def extend_episodes(
        self, episode_ids_indices: Any, episodes: Episodes
    ) -> tf.Tensor:
        """Adds `episodes` to this writer's episodes at the indices; returns all ids."""
        return self._remember(
            self._replay_buffer.extend_episodes(
                self._episode_ids.read_value(), episode_ids_indices, episodes
            )
        )

    def _remember(self, episode_ids: tf.Tensor) -> tf.Tensor:
        self._episode_ids.assign(episode_ids)
        return episode_ids

    def _add_batch(self, items: Any) -> tf.Tensor:
        return self._remember(
            self._replay_buffer.add_batch(items, self._episode_ids.read_value())
        )

    def _num_frames(self) -> tf.Tensor:
        return self._replay_buffer.num_frames()

    def _get_next(self, *args: Any) -> tuple[Any, BufferInfo]:
        return self._replay_buffer.get_next(*args)

    def _as_dataset(self, *args: Any) -> tf.data.Dataset:
        return self._replay_buffer._as_dataset(*args)

    def _single_deterministic_pass_dataset(self, *args: Any) -> tf.data.Dataset:
        return self._replay_buffer._single_deterministic_pass_dataset(*args)

    def _gather_all(self) -> Any:
        return self._replay_buffer.gather_all()

    def _clear(self) -> None:
        self._replay_buffer.clear()


def _gather(values: Any, indices: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda value: tf.gather(value, indices), values)


def _after(done: Any, values: Any) -> Any:
    with tf.control_dependencies([done]):
        return tf.nest.map_structure(tf.identity, values)


def _scalar(name: str, flag: Any) -> tf.Tensor:
    """Checks that `flag`, the result of the function `name`, is a bool scalar."""
    flag = tf.convert_to_tensor(flag, tf.bool)
    if flag.shape.rank != 0:
        raise ValueError(
            f"{name}: returned shape {flag.shape} for a sequence, expected a scalar, "
            "since a sequence belongs to one episode. Reduce over the frames."
        )
    return flag


def _episode_fn(
    name: str, fn: Callable[[Any], Any] | None, method: str
) -> Callable[[Any], Any]:
    """Returns `fn`; if it is None, a function that calls `method` of the items."""

    def from_items(items: Any) -> Any:
        if not callable(getattr(items, method, None)):
            raise TypeError(
                f"{name}: the items have no method {method}(), which is asked by "
                f"default; they are a {type(items).__name__}. Give the buffer a {name}."
            )
        return getattr(items, method)()

    if fn is not None and not callable(fn):
        raise TypeError(f"{name}: got {fn!r}, expected a function or None.")
    return fn or from_items


def _checked_ids(episode_ids: Any, rank: int) -> tf.Tensor:
    """Returns episode ids as an int64 tensor of rank 0 or 1, or raises a ValueError."""
    wanted = "a vector" if rank else "a scalar"
    if episode_ids is None:
        raise ValueError(
            f"episode_ids: got None, expected {wanted}. Begin with create_episode_ids, "
            "or use StatefulEpisodicReplayBuffer, which keeps them."
        )
    episode_ids = tf.convert_to_tensor(episode_ids, tf.int64)
    if episode_ids.shape.rank != rank:
        raise ValueError(
            f"episode_ids: got shape {episode_ids.shape}, expected {wanted}. Begin "
            f"with create_episode_ids({'num_episodes' if rank else ''})."
        )
    return episode_ids
