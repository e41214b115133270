"""`DynamicUnroll` applies a recurrent cell to sequences that hold several episodes."""

from __future__ import annotations

import inspect
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from tfrl.compilation import accelerators

# A sequence of static length is unrolled into the graph up to this length. A train step
# then takes two thirds of the time of a loop, which has to store the values that its
# gradient needs. Tracing takes about 20 ms for each step of the sequence.
_MAX_STATIC_STEPS = 32
# The same limit in a program that XLA compiles for the CPU. XLA computes the states of
# earlier steps again in each step, so the time to compile grows with the square of the
# length: 30 steps of an LSTM and their gradient take 27 s, and the loop 2 s. The loop
# also runs in the same time or less. `tf.vectorized_map`, as in a sweep, has no
# gradient of such a loop.
_MAX_COMPILED_STEPS = 4


@keras.saving.register_keras_serializable(package="tfrl")
class DynamicUnroll(keras.layers.Layer):
    """Applies a recurrent cell to each step of a sequence.

    `layer(inputs, initial_state=None, reset_mask=None)` returns
    `(outputs, final_state)`. Inputs `[B, T, ...]` give outputs `[B, T, ...]`; inputs
    `[B, n]` or `[B]` are a single step and give outputs `[B, ...]`. The state is
    `[B, ...]`, with the structure of `cell.state_size`.

    Where `reset_mask` is True the state becomes the cell's initial state before the
    step is taken, so that a sequence may hold the end of one episode and the beginning
    of the next.
    """

    def __init__(
        self,
        cell: Any,
        parallel_iterations: int = 20,
        swap_memory: bool | None = None,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          cell: A Keras recurrent cell, such as `keras.layers.LSTMCell`: a layer with
            `state_size`, `output_size`, `get_initial_state(batch_size)` and
            `call(inputs, states)`, which returns `(outputs, states)`.
          parallel_iterations: The `parallel_iterations` of the `tf.while_loop` that
            runs over long sequences.
          swap_memory: Whether that loop keeps the values for its gradient in host
            memory.
          **kwargs: Further arguments of a Keras layer, such as `name`.

        Raises:
          TypeError: If `cell` lacks `state_size`, `output_size` or `get_initial_state`.
        """
        for attribute in ("get_initial_state", "output_size", "state_size"):
            if getattr(cell, attribute, None) is None:
                raise TypeError(
                    f"cell: cell lacks {attribute}: {cell}, expected a recurrent Keras "
                    "cell; pass keras.layers.LSTMCell(units), or a layer with "
                    "get_initial_state, output_size and state_size."
                )
        kwargs.setdefault("dtype", getattr(cell, "dtype_policy", None))
        super().__init__(**kwargs)
        self.cell = cell
        self.parallel_iterations = parallel_iterations
        self.swap_memory = swap_memory
        self._wants_list = False

    @property
    def state_size(self) -> Any:
        """The cell's `state_size`, a nest of sizes."""
        return plain(self.cell.state_size)

    @property
    def output_size(self) -> Any:
        """The cell's `output_size`, a nest of sizes."""
        return plain(self.cell.output_size)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Returns the initial state, `[B, ...]`.

        Args:
          inputs: A nest of tensors that gives the batch size if `batch_size` is None.
          batch_size: The number of sequences.
          dtype: The dtype of the state, for cells that have this argument; by default
            the layer's compute dtype.
        """
        if batch_size is None:
            batch_size = _batch_size(tf.nest.flatten(inputs)[0])
        arguments = {"batch_size": batch_size}
        if "dtype" in inspect.signature(self.cell.get_initial_state).parameters:
            arguments["dtype"] = dtype or self.compute_dtype
        state = self.cell.get_initial_state(**arguments)
        return tf.nest.pack_sequence_as(self.state_size, tf.nest.flatten(state))

    def build(self, input_shape: Any) -> None:
        """Builds the cell for inputs `[B, T, ...]` or `[B, ...]`."""
        step_shape = keras.tree.map_shape_structure(
            lambda shape: (*shape[:1], *shape[2:]) if len(shape) > 2 else shape,
            input_shape,
        )
        if isinstance(self.cell, keras.layers.Layer) and not self.cell.built:
            self.cell.build(step_shape)
            self.cell.built = True
        if not tf.nest.is_nested(self.state_size):
            self._wants_list = self._returns_list(step_shape)

    def _returns_list(self, step_shape: Any) -> bool:
        """Whether a cell with a single state needs the state in a list.

        Keras passes such cells a list with one element, and many cells accept only such
        a list. The cells of Keras itself accept both.
        """

        def new_state() -> Any:
            inputs = keras.tree.map_shape_structure(
                lambda shape: tf.zeros([2, *shape[1:]], self.compute_dtype), step_shape
            )
            return self.cell(inputs, self.get_initial_state(batch_size=2))[1]

        try:
            probe = tf.function(new_state, autograph=False).get_concrete_function()
        except (TypeError, ValueError, tf.errors.InvalidArgumentError):
            return True
        finally:
            self._forget_dropout_masks()
        return bool(tf.nest.is_nested(probe.structured_outputs))

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        reset_mask: Any = None,
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns `(outputs, final_state)`.

        Args:
          inputs: A nest of `[B, T, ...]`, or a single step: a nest of `[B, n]` or
            `[B]`.
          initial_state: `[B, ...]`; the cell's initial state if None or `()`.
          reset_mask: Bool `[B, T]` (`[B]` for a single step), True where the state is
            reset before the step. Without it, the call is a little faster.
          training: Whether dropout in the cell is on. All steps share one dropout mask.

        Raises:
          ValueError: If the inputs differ in batch size.
        """
        inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
        flat = tf.nest.flatten(inputs)
        _check_batch_sizes(flat)
        zero_state = self.get_initial_state(inputs)
        state = zero_state
        if initial_state is not None and tf.nest.flatten(initial_state):
            state = tf.nest.pack_sequence_as(zero_state, tf.nest.flatten(initial_state))

        def step(inputs: Any, state: Any, reset: Any) -> tuple[Any, Any]:
            if reset is not None:
                state = tf.nest.map_structure(
                    lambda zero, s: tf.where(_expand(reset, s), zero, s),
                    zero_state,
                    state,
                )
            return self._apply_cell(inputs, state, training)

        if not all(x.shape.rank is None or x.shape.rank > 2 for x in flat):
            if reset_mask is not None and reset_mask.shape.rank == 2:
                reset_mask = reset_mask[:, 0]
            outputs, state = step(inputs, state, reset_mask)
        else:
            num_steps = flat[0].shape[1]
            if num_steps is not None and num_steps <= self._most_static_steps():
                outputs, state = _unroll(step, inputs, state, reset_mask, num_steps)
            else:
                self._draw_dropout_masks(inputs, state, training)
                outputs, state = self._loop(step, inputs, state, reset_mask)
        self._forget_dropout_masks()
        return outputs, state

    def _most_static_steps(self) -> int:
        """Returns the length up to which sequences are unrolled into the graph."""
        is_compiled = accelerators.in_host_program(self.variables)
        return _MAX_COMPILED_STEPS if is_compiled else _MAX_STATIC_STEPS

    def _apply_cell(self, inputs: Any, state: Any, training: Any) -> tuple[Any, Any]:
        kwargs = {"training": training} if _takes_training(self.cell) else {}
        given = [state] if self._wants_list else state
        outputs, new_state = self.cell(inputs, given, **kwargs)
        flat_state = tf.nest.flatten(new_state)
        return outputs, tf.nest.pack_sequence_as(state, flat_state)

    def _loop(
        self, step: Any, inputs: Any, state: Any, reset_mask: Any
    ) -> tuple[Any, Any]:
        """Applies the cell to all steps in a `tf.while_loop`."""
        sequences = inputs if reset_mask is None else (inputs, reset_mask)
        flat = tf.nest.flatten(inputs)
        num_steps = tf.shape(flat[0])[1]

        def as_array(x: tf.Tensor) -> tf.TensorArray:
            time_major = _swap_batch_and_time(x)
            array = tf.TensorArray(
                x.dtype, num_steps, element_shape=time_major.shape[1:]
            )
            return array.unstack(time_major)

        arrays = tf.nest.map_structure(as_array, sequences)
        outputs = tf.nest.map_structure(
            lambda _: tf.TensorArray(self.compute_dtype, num_steps), self.output_size
        )

        def body(t: tf.Tensor, state: Any, outputs: Any) -> tuple[Any, ...]:
            at_t = tf.nest.map_structure(lambda array: array.read(t), arrays)
            now, reset = (at_t, None) if reset_mask is None else at_t
            output, state = step(now, state, reset)
            outputs = tf.nest.map_structure(
                lambda array, x: array.write(t, x), outputs, output
            )
            return t + 1, state, outputs

        _, state, outputs = tf.while_loop(
            lambda t, *_: t < num_steps,
            body,
            (tf.constant(0), state, outputs),
            parallel_iterations=self.parallel_iterations,
            swap_memory=bool(self.swap_memory),
            maximum_iterations=num_steps,
        )
        stacked = tf.nest.map_structure(
            lambda array: _swap_batch_and_time(array.stack()), outputs
        )
        for output in tf.nest.flatten(stacked):  # A loop forgets the sizes.
            output.set_shape([*flat[0].shape[:2], *[None] * (output.shape.rank - 2)])
        return stacked, state

    def _draw_dropout_masks(self, inputs: Any, state: Any, training: Any) -> None:
        """Draws the cells' dropout masks outside of the loop's graph."""
        if not training:
            return
        first_inputs = tf.nest.map_structure(lambda x: x[:, 0], inputs)
        if hasattr(self.cell, "get_dropout_mask"):
            self.cell.get_dropout_mask(first_inputs)
            self.cell.get_recurrent_dropout_mask(tf.nest.flatten(state)[0])
        elif getattr(self.cell, "cells", None):
            # In a stack, each cell draws its mask when it is first applied.
            self._apply_cell(first_inputs, state, training)

    def _forget_dropout_masks(self) -> None:
        for cell in (self.cell, *getattr(self.cell, "cells", ())):
            if hasattr(cell, "reset_dropout_mask"):
                cell.reset_dropout_mask()
                cell.reset_recurrent_dropout_mask()

    @override
    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the shapes of `(outputs, final_state)`."""
        shapes: list[Any] = []
        keras.tree.map_shape_structure(shapes.append, input_shape)
        first = shapes[0]
        outer = first[:2] if len(first) > 2 else first[:1]
        return (
            tf.nest.map_structure(
                lambda size: (*outer, *_as_shape(size)), self.output_size
            ),
            tf.nest.map_structure(
                lambda size: (first[0], *_as_shape(size)), self.state_size
            ),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, with the cell serialized by Keras."""
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "parallel_iterations": self.parallel_iterations,
            "swap_memory": self.swap_memory,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes a layer from the result of `get_config`."""
        cell = keras.saving.deserialize_keras_object(
            config["cell"], custom_objects=custom_objects
        )
        return cls(**{**config, "cell": cell})


def plain(sizes: Any) -> Any:
    """Returns a nest with plain lists instead of Keras' own list class."""
    if isinstance(sizes, list):
        return [plain(size) for size in sizes]
    if isinstance(sizes, tuple) and not hasattr(sizes, "_fields"):
        return tuple(plain(size) for size in sizes)
    return sizes


def _unroll(
    step: Any, inputs: Any, state: Any, reset_mask: Any, num_steps: int
) -> tuple[Any, Any]:
    """Applies `step` to each step of the sequences, without a loop in the graph."""
    flat = [tf.unstack(x, num_steps, axis=1) for x in tf.nest.flatten(inputs)]
    resets = (
        [None] * num_steps
        if reset_mask is None
        else tf.unstack(reset_mask, num_steps, axis=1)
    )
    outputs = []
    for *now, reset in zip(*flat, resets, strict=True):
        output, state = step(tf.nest.pack_sequence_as(inputs, now), state, reset)
        outputs.append(output)
    return tf.nest.map_structure(lambda *xs: tf.stack(xs, axis=1), *outputs), state


def _swap_batch_and_time(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])


def _expand(mask: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    return tf.reshape(mask, [-1, *[1] * (like.shape.rank - 1)])


def _batch_size(x: tf.Tensor) -> Any:
    return x.shape[0] if x.shape[0] is not None else tf.shape(x)[0]


def _as_shape(size: Any) -> tuple[Any, ...]:
    return (size,) if isinstance(size, int) else tuple(size)


def _takes_training(cell: Any) -> bool:
    parameters = inspect.signature(cell.call).parameters
    return "training" in parameters or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )


def _check_batch_sizes(inputs: list[tf.Tensor]) -> None:
    sizes = {x.shape[0] for x in inputs} - {None}
    if len(sizes) > 1:
        raise ValueError(
            f"inputs: batch_size is not the same for all of them, got {sorted(sizes)}, "
            "expected one; pass tensors of one batch."
        )
