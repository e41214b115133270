"""The interface of replay buffers, and the checks that all buffers share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf
import tree

from tfrl.compilation import conversion, fast_dataset
from tfrl.typing import types
from tfrl.utils import mixins, number_checks

conversion.spare_modules()


class BufferInfo(NamedTuple):
    """Information about a sample beyond its items.

    Attributes:
      ids: The consecutive numbers of the frames, int64, shaped like one leaf of the
        items.
      probabilities: The probability with which each item or sequence was drawn, float32
        `[B]` or `[]`; `()` if nothing was drawn at random.
      keys: The windows' keys for `rewrite`, int64 `[B]` or `[]`; `()` from a buffer
        that does not rewrite.
    """

    ids: Any
    probabilities: Any
    keys: Any = ()


class ReplayBuffer(tf.Module, mixins.Untracked):
    """Base of replay buffers, which store nests of tensors and sample them.

    Subclasses override the methods that they support: `_num_frames`, `_add_batch`,
    `_get_next`, `_as_dataset`, `_single_deterministic_pass_dataset`, `_gather_all` and
    `_clear`.

    A loop of `tfrl.train` reads the abilities of a buffer from these attributes and
    methods: `supports_xla`, `is_prioritized`, `draws_by_seed`, `works_in_graph`,
    `batch_size`, `max_length` and `check_fits`. This class has the values of a plain
    buffer; subclasses override the values that differ.
    """

    def __init__(
        self, data_spec: types.NestedSpec, capacity: int, stateful_dataset: bool = False
    ) -> None:
        """Stores the description of the buffer.

        Args:
          data_spec: A nest of specs that describes one item.
          capacity: The number of items that the buffer can hold.
          stateful_dataset: Whether the buffer's datasets run stateful operations.
        """
        super().__init__()
        self._set_untracked("_data_spec", data_spec)
        self._capacity = capacity
        self._stateful_dataset = stateful_dataset

    @property
    def data_spec(self) -> Any:
        """The nest of specs of one item."""
        return self._data_spec

    @property
    def capacity(self) -> int:
        """The number of items that the buffer can hold."""
        return self._capacity

    @property
    def stateful_dataset(self) -> bool:
        """Whether the buffer's datasets run stateful operations."""
        return self._stateful_dataset

    @property
    def supports_xla(self) -> bool:
        """Whether XLA can compile `add_batch`, `get_next`, `num_frames` and `clear`.

        A loop with `jit_compile` needs it; an `EpisodicLoop` also needs `gather_first`.
        False unless a subclass says otherwise.
        """
        return False

    @property
    def calls_python(self) -> bool:
        """Whether a sample calls Python, which XLA programs can do only on the CPU.

        False unless a subclass says otherwise.
        """
        return False

    @property
    def draws_by_seed(self) -> bool:
        """Whether the buffer has a method `sample(sample_batch_size, num_steps, seed)`.

        Such a draw depends only on the contents and the seed, and changes nothing, so a
        log may use a batch without an effect on training. False unless a subclass says
        otherwise.
        """
        return False

    @property
    def works_in_graph(self) -> bool:
        """Whether a `tf.function` may trace `add_batch`.

        By default, whether the buffer holds variables. A buffer without variables
        stores its items in Python, where a traced call would write only once.
        """
        found: Any = self.variables  # Some subclasses have a method of that name.
        return bool(found() if callable(found) else found)

    @property
    def is_prioritized(self) -> bool:
        """Whether trainers call `update_priorities` after each update.

        The info of a sample then has `keys` and `weights`, as `PrioritizedBufferInfo`
        describes them. False unless a subclass says otherwise.
        """
        return False

    @property
    def can_rewrite(self) -> bool:
        """Whether `rewrite` works. False unless a subclass says otherwise."""
        return False

    @property
    def batch_size(self) -> int | None:
        """The number of items that `add_batch` takes at once; None for any number."""
        return None

    @property
    def max_length(self) -> int | None:
        """The number of frames of each environment that are kept; None for no limit."""
        return None

    def check_fits(self, num_steps: int | None) -> None:
        """Raises a ValueError if windows of `num_steps` frames can never be sampled."""
        max_length = self.max_length
        if num_steps is None or max_length is None:
            return
        if num_steps > max_length:
            raise ValueError(
                f"num_steps: got {num_steps}, but the buffer keeps only max_length="
                f"{max_length} frames of each environment, so no window can be "
                f"sampled. Make it with max_length >= {num_steps}."
            )

    def check_collected(self) -> None:
        """Checks the first frames of a run, which were just collected.

        Raises:
          ValueError: If the buffer cannot return them as they should be.
        """

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the buffer's own exception instead of TensorFlow's wrapper of it.

        Call a graph that uses the buffer inside `with replay_buffer.reraise():`. Most
        buffers have no exceptions of their own, so by default it changes nothing.
        """
        yield

    def num_frames(self) -> Any:
        """Returns the number of items in the buffer."""
        return self._num_frames()

    def add_batch(self, items: Any) -> Any:
        """Adds a batch of items, each leaf `[B, *spec shape]`.

        Returns:
          In a graph, a tensor or operation that completes after the items are written.
        """
        return self._add_batch(items)

    def get_next(
        self,
        sample_batch_size: int | None = None,
        num_steps: int | None = None,
        time_stacked: bool = True,
    ) -> Any:
        """Returns items drawn at random.

        Args:
          sample_batch_size: The number of items to draw (`B`); None draws one item
            without a batch dimension.
          num_steps: The number of successive frames in one item (`T`); None gives
            single frames without a time dimension (whole episodes in an episodic
            buffer).
          time_stacked: Whether the frames are stacked, `[B, T, ...]`; otherwise a tuple
            of `T` items `[B, ...]` is returned.

        Returns:
          `(items, BufferInfo)`.
        """
        number_checks.check_sizes(
            optional=True, sample_batch_size=sample_batch_size, num_steps=num_steps
        )
        return self._get_next(sample_batch_size, num_steps, time_stacked)

    def as_dataset(
        self,
        sample_batch_size: int | None = None,
        num_steps: int | None = None,
        num_parallel_calls: int | None = None,
        sequence_preprocess_fn: Callable[[Any], Any] | None = None,
        single_deterministic_pass: bool = False,
    ) -> tf.data.Dataset:
        """Returns a `tf.data.Dataset` of samples from the buffer.

        The dataset is endless and reads the buffer again for every element: each
        `next(iterator)` takes everything into account that was written before it. This
        is true only if elements are made one at a time, and only then does the same
        seed give the same samples. With `num_parallel_calls`, or after
        `.prefetch(...)`, samples are drawn some steps earlier and in an order that
        depends on timing.

        Inside a tf.function a dataset's reads are invisible to automatic control
        dependencies, so chain them to the writes. (The uniform and the prioritized
        buffer need no chaining if the dataset is used as returned, or with `prefetch`
        only: then each element is drawn from the buffer's variables, in order.)

        ```python
        replay_buffer.add_batch(items)
        with tf.control_dependencies([replay_buffer.num_frames()]):
            experience, info = next(iterator)
        ```

        An iterator cannot be checkpointed; make a new one from the restored buffer.

        Args:
          sample_batch_size: The number of items in one element; see `get_next`.
          num_steps: The number of successive frames in one item; see `get_next`.
          num_parallel_calls: The number of elements that are made at the same time;
            None makes them one after another.
          sequence_preprocess_fn: Applied to the items of each element.
          single_deterministic_pass: Whether to iterate once over the frames in the
            order in which they were written, instead of drawing at random without end.
            Writing to the buffer during the pass may overwrite frames that are still to
            come.

        Returns:
          A dataset of `(items, BufferInfo)`.

        Raises:
          ValueError: If an argument is not a positive number, or the data spec contains
            lists, which tf.data would turn into tensors.
          NotImplementedError: If the buffer does not support an argument.
        """
        number_checks.check_sizes(
            optional=True, sample_batch_size=sample_batch_size, num_steps=num_steps
        )
        _check_no_lists(self._data_spec)
        make = (
            self._single_deterministic_pass_dataset
            if single_deterministic_pass
            else self._as_dataset
        )
        if sequence_preprocess_fn is None:
            # AutoGraph would convert all functions called here. It has to convert the
            # caller's.
            make = tf.autograph.experimental.do_not_convert(make)
        dataset = make(
            sample_batch_size, num_steps, sequence_preprocess_fn, num_parallel_calls
        )
        # By default tf.data injects prefetching and parallel calls. Elements would then
        # be older than the last write, and out of order inside a graph.
        options = tf.data.Options()
        options.autotune.enabled = False
        draw = None
        if sequence_preprocess_fn is None and not single_deterministic_pass:
            draw = self._drawing(sample_batch_size, num_steps)
        return fast_dataset.fast_dataset(dataset.with_options(options), draw)

    def gather_all(self) -> Any:
        """Returns all items in the buffer, `[B, T, ...]`, the oldest first."""
        return self._gather_all()

    def gather_first(self, num_frames: int) -> Any:
        """Returns the first frames that were added to each environment since `clear`.

        Like `gather_all`, but the result has a fixed shape, which XLA needs.

        Args:
          num_frames: The number of frames of each environment to return.

        Returns:
          Tensors `[B, num_frames, ...]` in the structure of the data spec; frames that
          the buffer does not hold are all zeros.
        """
        raise NotImplementedError(f"{type(self).__name__}.gather_first")

    def update_priorities(self, keys: Any, priorities: Any) -> Any:
        """Sets the priorities of sampled items, `[N]`; see `is_prioritized`.

        Args:
          keys: The `keys` of a sample's info, `[N]`.
          priorities: The new priorities, floats `[N]`.
        """
        raise NotImplementedError(f"{type(self).__name__}.update_priorities")

    def rewrite(self, keys: Any, items: Any) -> Any:
        """Writes drawn windows `[N, T, ...]` back; see `can_rewrite`.

        Args:
          keys: The `keys` of a sample's info, `[N]`.
          items: The windows.
        """
        raise NotImplementedError(f"{type(self).__name__}.rewrite")

    def clear(self) -> Any:
        """Empties the buffer."""
        return self._clear()

    def _num_frames(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.num_frames")

    def _add_batch(self, items: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.add_batch")

    def _get_next(
        self, sample_batch_size: int | None, num_steps: int | None, time_stacked: bool
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.get_next")

    def _as_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        raise NotImplementedError(f"{type(self).__name__}.as_dataset")

    def _drawing(
        self, sample_batch_size: int | None, num_steps: int | None
    ) -> Callable[[], Any] | None:
        """Returns a function that draws one element in a graph, or None."""
        del sample_batch_size, num_steps
        return None

    def _single_deterministic_pass_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        raise NotImplementedError(
            f"{type(self).__name__}.as_dataset(single_deterministic_pass=True)"
        )

    def _gather_all(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.gather_all")

    def _clear(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.clear")


def placed(device: str | None) -> contextlib.AbstractContextManager[Any]:
    """Returns the scope of `device`; None leaves the choice to TensorFlow."""
    return contextlib.nullcontext() if device is None else tf.device(device)


def _check_no_lists(data_spec: Any) -> None:
    def visit(node: Any) -> None:
        if isinstance(node, list):
            raise ValueError(
                "data_spec contains a list, which tf.data takes for one tensor. "
                "Convert any lists to tuples: [a, b, c] becomes (a, b, c). The spec "
                f"is\n  {data_spec}"
            )

    tree.traverse(visit, data_spec)
