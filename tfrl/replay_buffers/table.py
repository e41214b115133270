"""A table of rows in `tf.Variable`s: one variable for each leaf of a nest.

Rows are written with `scatter_update` (on a GPU, blocks of rows with assigned slices)
and read with `gather`, so the cost of an access does not grow with the number of rows,
and both compile under XLA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tree

from tfrl.compilation import (
    accelerators,
    context,
    stored_values,
    variable_substitution,
    words,
)
from tfrl.savers import sliced_variables
from tfrl.utils import mixins

if TYPE_CHECKING:
    from tfrl.typing import types


class Table(tf.Module, mixins.Untracked):
    """Holds `capacity` rows, each a nest of tensors that matches `tensor_spec`.

    The variables have shape `[capacity, ...]` and start as zeros. Each leaf is a
    *slot*. Slots are named by their specs if these have distinct names, otherwise by
    their paths in the nest (`'1/0'`).
    """

    def __init__(
        self, tensor_spec: types.NestedTensorSpec, capacity: int, scope: str = "Table"
    ) -> None:
        """Creates the variables.

        Args:
          tensor_spec: A nest of `tf.TensorSpec`s with fully defined shapes.
          capacity: The number of rows.
          scope: The prefix of the variables' names.

        Raises:
          ValueError: If a leaf is not a `tf.TensorSpec` of fully defined shape.
        """
        super().__init__(name=scope)
        names = slot_names(tensor_spec)
        specs = dict(zip(names, tree.flatten(tensor_spec), strict=True))
        self._set_untracked("_slots", tree.unflatten_as(tensor_spec, names))
        self._storage = {
            name: stored_values.zeros(
                [int(capacity), *spec.shape], spec.dtype, f"{scope}/{name}"
            )
            for name, spec in specs.items()
        }
        for variable in self._storage.values():
            sliced_variables.save_in_slices(variable)
        self._set_untracked("_dtypes", {name: s.dtype for name, s in specs.items()})

    @property
    def slots(self) -> Any:
        """The slots' names, in the structure of the spec."""
        return self._slots

    def variables(self) -> list[tf.Variable]:
        """Returns the variables in the order of the flattened spec."""
        return [self._storage[name] for name in tree.flatten(self._slots)]

    def read(self, rows: Any, slots: Any = None) -> Any:
        """Returns the values at `rows`.

        Args:
          rows: A row number, or an integer tensor `[...]` of row numbers.
          slots: A nest of slot names to read; by default all of them.

        Returns:
          Tensors `[..., *leaf shape]`, in the structure of `slots` (or the spec).
        """
        rows = tf.convert_to_tensor(rows)
        return tf.nest.map_structure(
            lambda name: stored_values.from_stored(
                tf.gather(self._storage[name], rows), self._dtypes[name]
            ),
            self._slots if slots is None else slots,
        )

    def write(self, rows: Any, values: Any, slots: Any = None) -> Any:
        """Writes `values` to `rows`; returns the operation (None if eager).

        Args:
          rows: A row number, or an integer tensor `[...]` of row numbers.
          values: Tensors `[..., *leaf shape]`, in the structure of `slots` (or the
            spec).
          slots: A nest of slot names to write; by default all of them.

        Raises:
          ValueError: If `values` and the slots differ in structure.
        """
        slots = self._slots if slots is None else slots
        tf.nest.assert_same_structure(slots, values)
        rows = tf.convert_to_tensor(rows)
        writes = []
        for name, value in zip(
            tree.flatten(slots), tf.nest.flatten(values), strict=True
        ):
            variable = self._storage[name]
            updates = tf.convert_to_tensor(value, self._dtypes[name])
            updates = stored_values.to_stored(updates)
            writes.append(variable.scatter_update(tf.IndexedSlices(updates, rows)))
        return tf.group(*writes)

    def write_block(self, block: Any, values: Any) -> Any:
        """Writes the `N` rows from row `block * N` on; returns the op (None if eager).

        The number of rows must be a multiple of `N`.

        Args:
          block: The number of the block, an integer scalar.
          values: Tensors `[N, *leaf shape]`, in the structure of the spec.

        Raises:
          ValueError: If `values` and the spec differ in structure.
        """
        tf.nest.assert_same_structure(self._slots, values)
        first = tf.nest.flatten(values)[0]
        num_rows = first.shape[0] or tf.shape(first)[0]
        pairs = zip(self.variables(), tf.nest.flatten(values), strict=True)
        if context.in_xla_graph():
            for variable, value in pairs:
                value = stored_values.to_stored(value)
                variable.assign(_with_block(variable, block, value))
            return tf.no_op()
        if self._assigns_slices():
            start = tf.cast(block, tf.int32) * num_rows
            slices = [_assign_slice(*pair, start, num_rows) for pair in pairs]
            return tf.group(*slices)
        block = tf.convert_to_tensor(block)
        rows = block * tf.cast(num_rows, block.dtype)
        return self.write(rows + tf.range(num_rows, dtype=block.dtype), values)

    def _assigns_slices(self) -> bool:
        """Whether rows are assigned as slices, which a GPU does in its own memory.

        To scatter integers, TensorFlow copies the whole variable from the GPU to the
        host and back. On a CPU, a scatter is faster, much faster for images.
        """
        stands_for = variable_substitution.active() or ()
        return not any(
            variable in stands_for
            or accelerators.is_host(variable.device)
            or variable.shape[0] > tf.int32.max
            for variable in self.variables()
        )


def _assign_slice(
    variable: tf.Variable, value: tf.Tensor, start: tf.Tensor, number: tf.Tensor | int
) -> tf.Operation:
    """Assigns `number` rows from row `start` on; returns the operation."""
    # The raw operation: `variable[i:j]` would add a read of the whole variable.
    return tf.raw_ops.ResourceStridedSliceAssign(
        ref=variable.handle,
        begin=tf.reshape(start, [1]),
        end=tf.reshape(start + number, [1]),
        strides=[1],
        value=stored_values.to_stored(tf.convert_to_tensor(value)),
    )


def _with_block(variable: tf.Variable, block: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    """Returns the table with one block replaced, so that XLA updates it in place.

    XLA would fuse a single update into the read that follows. Then the update and the
    read both need the old table, so XLA copies the whole table at every write. With two
    updates XLA does not fuse them, so the block is written twice.
    """
    blocks = tf.reshape(variable, [-1, *value.shape])
    block = tf.cast(block, tf.int32)
    written = tf.tensor_scatter_nd_update(
        blocks, tf.stack([block, block])[:, tf.newaxis], tf.stack([value, value])
    )
    return tf.reshape(written, variable.shape)


def slot_names(tensor_spec: Any) -> list[str]:
    """Returns the names of a spec's slots; see `Table`."""
    leaves = tree.flatten_with_path(tensor_spec)
    for path, spec in leaves:
        if not isinstance(spec, tf.TensorSpec) or not spec.shape.is_fully_defined():
            raise ValueError(
                f"data_spec{list(path) or ''}: got {spec!r}; storage needs a "
                "tf.TensorSpec with a fully defined shape. Convert other specs with "
                "tensor_spec.from_spec and leave batch and time dimensions out."
            )
    names = [spec.name for _, spec in leaves]
    if all(names) and len(set(names)) == len(names):
        return names
    return ["/".join(map(str, path)) or "slot" for path, _ in leaves]


class PackedTable(tf.Module, mixins.Untracked):
    """A table that keeps the small parts of a row side by side, in one `tf.Variable`.

    It holds `capacity` rows, each a nest of tensors that matches `tensor_spec`. A row
    of a replay buffer often consists of a few numbers. If each number had its own
    variable, reading a random row of a large table would cost a cache miss for each
    number, and every variable would need an operation to write and one to read. Here
    the numbers are the words of one row.

    Small leaves of 32 or 64 bits per element share one variable `[capacity, words]`.
    Every other leaf has its own variable, `[capacity, ...]`, as in a `Table`. All
    variables start as zeros.
    """

    def __init__(self, tensor_spec: Any, capacity: int, scope: str = "Table") -> None:
        """Creates the variables.

        Args:
          tensor_spec: A nest of `tf.TensorSpec`s with fully defined shapes.
          capacity: The number of rows.
          scope: The prefix of the variables' names.

        Raises:
          ValueError: If a leaf is not a `tf.TensorSpec` of fully defined shape.
        """
        super().__init__(name=scope)
        slot_names(tensor_spec)  # This checks the leaves.
        self._set_untracked("_spec", tensor_spec)
        # Packing a single leaf would gain nothing.
        self._layout = words.WordLayout(tree.flatten(tensor_spec), fewest=2)
        self._table = Table(tuple(self._layout.stored_specs), capacity, scope)

    def variables(self) -> list[tf.Variable]:
        """Returns the variables of separate leaves, and then the variable of words."""
        return self._table.variables()

    def read(self, rows: Any) -> Any:
        """Returns the values at `rows`.

        Args:
          rows: A row number, or an integer tensor `[...]` of row numbers.

        Returns:
          Tensors `[..., *leaf shape]`, in the structure of the spec.
        """
        flat = self._layout.from_words(self._table.read(rows))
        return tf.nest.pack_sequence_as(self._spec, flat)

    def write_block(self, block: Any, values: Any) -> Any:
        """Writes the `N` rows that start at row `block * N`; returns the operation.

        Args:
          block: The number of the block, an integer scalar.
          values: Tensors `[N, *leaf shape]`, in the structure of the spec.

        Raises:
          ValueError: If `values` and the spec differ in structure.
        """
        return self._table.write_block(block, self._to_stored(values))

    def write(self, rows: Any, values: Any) -> Any:
        """Writes `values` to `rows`; returns the operation (None if eager).

        Args:
          rows: An integer tensor `[...]` of row numbers.
          values: Tensors `[..., *leaf shape]`, in the structure of the spec.

        Raises:
          ValueError: If `values` and the spec differ in structure.
        """
        return self._table.write(rows, self._to_stored(values))

    def _to_stored(self, values: Any) -> tuple[tf.Tensor, ...]:
        """Returns the tensors to store for a nest of tensors `[..., *leaf shape]`."""
        tf.nest.assert_same_structure(self._spec, values)
        flat = [
            tf.convert_to_tensor(value, spec.dtype)
            for value, spec in zip(
                tf.nest.flatten(values), tf.nest.flatten(self._spec), strict=True
            )
        ]
        return tuple(self._layout.to_words(flat))
