"""A table whose rows hold one episode each, of any length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tree

from tfrl.replay_buffers import table
from tfrl.utils import mixins

if TYPE_CHECKING:
    from tfrl.typing import types


class EpisodicTable(tf.Module, mixins.Untracked):
    """Holds `capacity` rows, each a sequence of items that match `tensor_spec`.

    Rows are TensorLists. Each leaf of the spec is a *slot*, which has one variable
    `[capacity]` of dtype variant. Adding a frame copies references to the episode's
    frames, not the frames themselves.
    """

    def __init__(
        self,
        tensor_spec: types.NestedTensorSpec,
        capacity: int,
        name_prefix: str = "EpisodicTable",
    ) -> None:
        """Creates empty rows.

        Args:
          tensor_spec: A nest of `tf.TensorSpec`s with fully defined shapes.
          capacity: The number of rows.
          name_prefix: The prefix of the variables' names.

        Raises:
          ValueError: If a leaf is not a `tf.TensorSpec` of fully defined shape.
        """
        super().__init__(name=name_prefix)
        names = table.slot_names(tensor_spec)
        self._set_untracked("_tensor_spec", tensor_spec)
        self._set_untracked("_slots", tree.unflatten_as(tensor_spec, names))
        self._capacity = int(capacity)
        self._names = tuple(names)
        self._specs = dict(zip(names, tree.flatten(tensor_spec), strict=True))
        self._storage = {
            name: tf.Variable(
                _empty_lists(spec, self._capacity),
                trainable=False,
                name=f"{name_prefix}/{name}",
            )
            for name, spec in self._specs.items()
        }

    @property
    def slots(self) -> Any:
        """The slots' names, in the structure of the spec."""
        return self._slots

    def variables(self) -> list[tf.Variable]:
        """Returns the variables in the order of the flattened spec."""
        return [self._storage[name] for name in self._names]

    def get_episode_lists(self, rows: Any = None) -> Any:
        """Returns the TensorLists at `rows` (None: all rows), `[N]` for each leaf."""
        rows = tf.range(self._capacity) if rows is None else tf.convert_to_tensor(rows)
        return tf.nest.map_structure(
            lambda name: tf.gather(self._storage[name], rows), self._slots
        )

    def get_episode_values(self, row: Any) -> Any:
        """Returns the frames in one row, each leaf `[T, *leaf shape]`."""
        return tf.nest.map_structure(
            lambda one, spec: tf.ensure_shape(
                tf.raw_ops.TensorListStack(
                    input_handle=one, **_element(spec), num_elements=-1
                ),
                [None, *spec.shape],
            ),
            self.get_episode_lists(row),
            self._tensor_spec,
        )

    def slice(self, lists: Any, start: Any, number: Any) -> Any:
        """Returns `number` frames of one row's lists, each leaf `[number, ...]`."""
        indices = tf.cast(start, tf.int32) + tf.range(number, dtype=tf.int32)
        return tf.nest.map_structure(
            lambda one, spec: tf.ensure_shape(
                tf.raw_ops.TensorListGather(
                    input_handle=one, indices=indices, **_element(spec)
                ),
                [*indices.shape, *spec.shape],
            ),
            lists,
            self._tensor_spec,
        )

    def append(self, row: Any, values: Any) -> Any:
        """Adds frames, each leaf `[T, *leaf shape]`, at the end of one row."""
        return self.extend(tf.reshape(row, [1]), self.to_lists(values))

    def to_lists(self, values: Any) -> Any:
        """Returns frames `[T, *leaf shape]` as one TensorList for each leaf, `[1]`."""
        return tf.nest.map_structure(
            lambda value, spec: tf.raw_ops.TensorListFromTensor(
                tensor=value, element_shape=_shape(spec)
            )[tf.newaxis],
            values,
            self._tensor_spec,
        )

    def add(self, rows: Any, values: Any) -> Any:
        """Adds one frame to each of `rows`; each leaf is `[number of rows, ...]`."""
        rows = tf.convert_to_tensor(rows)
        return self._update(
            rows,
            tf.nest.map_structure(
                lambda lists, value: tf.raw_ops.TensorListPushBackBatch(
                    input_handles=lists, tensor=value
                ),
                self.get_episode_lists(rows),
                values,
            ),
        )

    def extend(self, rows: Any, episode_lists: Any) -> Any:
        """Adds the frames of TensorLists, `[number of rows]` per leaf, to `rows`."""
        rows = tf.convert_to_tensor(rows)
        return self._update(
            rows,
            tf.nest.map_structure(
                lambda old, new, spec: tf.raw_ops.TensorListConcatLists(
                    input_a=old, input_b=new, element_dtype=spec.dtype
                ),
                self.get_episode_lists(rows),
                episode_lists,
                self._tensor_spec,
            ),
        )

    def clear(self) -> Any:
        """Empties all rows."""
        return self.clear_rows(tf.range(self._capacity))

    def clear_rows(self, rows: Any) -> Any:
        """Empties `rows`."""
        rows = tf.convert_to_tensor(rows)
        return self._update(
            rows,
            tf.nest.map_structure(
                lambda spec: _empty_lists(spec, tf.size(rows)), self._tensor_spec
            ),
        )

    def _update(self, rows: tf.Tensor, lists: Any) -> Any:
        """Writes `lists` to `rows`; returns the operation (None if eager)."""
        return tf.group(
            *(
                self._storage[name].scatter_update(tf.IndexedSlices(new, rows))
                for name, new in zip(self._names, tf.nest.flatten(lists), strict=True)
            )
        )


def _shape(spec: tf.TensorSpec) -> tf.Tensor:
    return tf.constant(spec.shape.as_list(), tf.int64)


def _empty_lists(spec: tf.TensorSpec, number: Any) -> tf.Tensor:
    empty = tf.raw_ops.EmptyTensorList(
        element_shape=_shape(spec), max_num_elements=-1, element_dtype=spec.dtype
    )
    return tf.fill([number], empty)


def _element(spec: tf.TensorSpec) -> dict[str, Any]:
    return {
        "element_shape": tf.constant(spec.shape.as_list(), tf.int32),
        "element_dtype": spec.dtype,
    }
