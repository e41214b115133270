"""Replaces variables by tensors, to make a stateful computation a pure function.

Inside `substituted(variables, tensors)` each variable *is* its tensor: reading returns
the tensor, assigning replaces it. Code that holds its state in variables (an agent's
train step, a replay buffer, an environment) becomes a function that takes the state as
tensors and returns the new state. `tf.vectorized_map` can run this function for many
copies of the state in one call.

A variable may also stand for another one, such as its copy on another device. Code may
assign to it inside a loop or a condition, too.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals

_active: contextvars.ContextVar[Substitution | None] = contextvars.ContextVar(
    "tfrl_substitution", default=None
)


class Substitution:
    """The tensors, or variables, that currently replace variables."""

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        tensors: Sequence[tf.Tensor | tf.Variable],
    ) -> None:
        """Creates the substitution.

        Args:
          variables: The variables.
          tensors: A tensor, or another variable, of the same shape and dtype for each
            variable.
        """
        self._variables = list(variables)
        self._graph = tf.compat.v1.get_default_graph()
        self._tensors = {
            id(variable): tensor
            for variable, tensor in zip(variables, tensors, strict=True)
        }

    def __contains__(self, variable: Any) -> bool:
        return id(variable) in self._tensors

    def get(self, variable: tf.Variable) -> tf.Tensor:
        """Returns the value that currently replaces the variable."""
        return tf.convert_to_tensor(self._tensors[id(variable)])

    def set(self, variable: tf.Variable, value: Any) -> tf.Tensor:
        """Makes `value` the variable's value, and returns it as a tensor.

        Raises:
          NotImplementedError: If a tensor stands for the variable, and this is called
            in a graph inside the substitution's graph.
        """
        stand_in = self._tensors[id(variable)]
        if isinstance(stand_in, tf.Variable):
            tensor = tf.cast(tf.convert_to_tensor(value), variable.dtype)
            stand_in.assign(tensor)
            return tensor
        if tf.compat.v1.get_default_graph() is not self._graph:
            raise NotImplementedError(
                f"{variable.name}: got an assignment inside of a tf.cond, "
                "tf.while_loop or tf.function, expected it outside of them, since the "
                "variable is only a tensor here (many runs are trained at once, say); "
                "use tfrl.compilation.variable_substitution.cond, or tf.where."
            )
        tensor = tf.cast(tf.convert_to_tensor(value), variable.dtype)
        tensor = tf.ensure_shape(tensor, variable.shape)
        self._tensors[id(variable)] = tensor
        return tensor

    def tensors(self) -> list[tf.Tensor | tf.Variable]:
        """Returns the current replacements, in the order of the variables."""
        return [self._tensors[id(variable)] for variable in self._variables]


def active() -> Substitution | None:
    """Returns the current substitution, or None outside of `substituted`."""
    return _active.get()


@contextlib.contextmanager
def substituted(
    variables: Sequence[tf.Variable], tensors: Sequence[tf.Tensor | tf.Variable]
) -> Iterator[Substitution]:
    """Replaces variables by tensors, or other variables, while a graph is built.

    Args:
      variables: `tf.Variable`s; for a Keras variable, the `tf.Variable` behind it.
      tensors: A tensor, or another variable, of the same shape and dtype for each
        variable.

    Yields:
      The `Substitution`. At the end, its `tensors()` are the variables' new values.

    Raises:
      RuntimeError: If another substitution is active.
    """
    if active() is not None:
        raise RuntimeError(
            "substituted: entered while other variables are tensors already, expected "
            "one scope at a time; substitute all of them in one."
        )
    substitution = Substitution(variables, tensors)
    token = _active.set(substitution)
    classes = [type(variable) for variable in variables]
    try:
        for variable, original in zip(variables, classes, strict=True):
            # The variable object itself has to behave differently, since code holds
            # references to it everywhere. Changing its class is easier to undo than
            # changing its methods.
            internals.change_class(variable, _substitute_class(original))
        yield substitution
    finally:
        for variable, original in zip(variables, classes, strict=True):
            internals.change_class(variable, original)
        _active.reset(token)


def cond(due: tf.Tensor, body: Callable[[], Any], otherwise: Any = ()) -> Any:
    """Runs `body`, which assigns to variables, if `due` is true.

    In a substitution the body always runs, and its assignments are discarded if `due`
    is false.

    Args:
      due: A bool scalar.
      body: A function without arguments.
      otherwise: The result if `due` is false, a nest of tensors like the result of
        `body`. Without it, the result of `body` is discarded.

    Returns:
      The result of `body`, or `otherwise`.
    """

    def run() -> Any:
        result = body()
        return result if tf.nest.flatten(otherwise) else ()

    substitution = active()
    if substitution is None:
        # tf.cond needs an output.
        _, result = tf.cond(
            due,
            lambda: (tf.constant(True), run()),
            lambda: (tf.constant(False), otherwise),
        )
        return result
    before = {
        key: tf.convert_to_tensor(stand_in)
        for key, stand_in in substitution._tensors.items()
    }
    result = run()
    for key, stand_in in substitution._tensors.items():
        if isinstance(stand_in, tf.Variable):
            stand_in.assign(tf.where(due, stand_in, before[key]))
        elif stand_in is not before[key]:
            substitution._tensors[key] = tf.where(due, stand_in, before[key])
    return tf.nest.map_structure(
        lambda new, old: tf.where(due, new, old), result, otherwise
    )


class _Substitute:
    """The methods of a substituted variable."""

    dtype: tf.DType

    @property
    def handle(self) -> tf.Tensor:
        """The tensor by which a gradient tape identifies the variable."""
        substitution = active()
        assert substitution is not None
        return substitution.get(self)

    def value(self) -> tf.Tensor:
        return _current(self)

    def read_value(self) -> tf.Tensor:
        return _current(self)

    def numpy(self) -> Any:
        raise NotImplementedError(_unsupported(self, "numpy"))

    def sparse_read(self, indices: Any, name: str | None = None) -> tf.Tensor:
        return tf.gather(_current(self), indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> tf.Tensor:
        return tf.gather_nd(_current(self), indices, name=name)

    def assign(self, value: Any, *_: Any, **__: Any) -> tf.Tensor:
        return _change(self, value)

    def assign_add(self, delta: Any, *_: Any, **__: Any) -> tf.Tensor:
        return _change(self, _current(self) + tf.cast(delta, self.dtype))

    def assign_sub(self, delta: Any, *_: Any, **__: Any) -> tf.Tensor:
        return _change(self, _current(self) - tf.cast(delta, self.dtype))

    def scatter_update(self, sparse_delta: tf.IndexedSlices, *_: Any) -> tf.Tensor:
        return self.scatter_nd_update(_rows(sparse_delta), sparse_delta.values)

    def scatter_nd_update(self, indices: Any, updates: Any, *_: Any) -> tf.Tensor:
        updates = tf.cast(updates, self.dtype)
        # A vectorized map supports int32 indices only.
        indices = tf.cast(indices, tf.int32)
        return _change(
            self, tf.tensor_scatter_nd_update(_current(self), indices, updates)
        )

    def scatter_add(self, sparse_delta: tf.IndexedSlices, *_: Any) -> tf.Tensor:
        return _change(
            self,
            tf.tensor_scatter_nd_add(
                _current(self), _rows(sparse_delta), sparse_delta.values
            ),
        )


def _rows(sparse_delta: tf.IndexedSlices) -> tf.Tensor:
    """Returns the indices of the changed rows, int32 `[..., 1]`."""
    return tf.cast(sparse_delta.indices, tf.int32)[..., tf.newaxis]


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(_unsupported(self, name))

    return refuse


for _name in (
    internals.SLICE_ASSIGN,
    "batch_scatter_update",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_sub",
    "scatter_sub",
):
    setattr(_Substitute, _name, _refuse(_name))


def _unsupported(variable: Any, name: str) -> str:
    return (
        f"{variable.name}.{name}: the variable is only a tensor here (many runs are "
        "trained at once, say), expected reading, assign, assign_add, assign_sub, "
        "scatter_update or scatter_add; use one of those."
    )


def _current(variable: Any) -> tf.Tensor:
    substitution = active()
    assert substitution is not None
    if variable.trainable:
        # Gradient tapes watch `handle`, which is the tensor.
        internals.variable_accessed(variable)
    return substitution.get(variable)


def _change(variable: Any, value: Any) -> tf.Tensor:
    substitution = active()
    assert substitution is not None
    return substitution.set(variable, value)


_classes: dict[type, type] = {}


def _substitute_class(original: type) -> type:
    if original not in _classes:
        _classes[original] = type(
            f"Substituted{original.__name__}", (_Substitute, original), {}
        )
    return _classes[original]
