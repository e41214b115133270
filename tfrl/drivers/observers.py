"""Shows steps to observers, in graphs too, and calls Python functions as observers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation import variable_substitution
from tfrl.compilation.python_calls import host_calls


def show(observers: Iterable[Callable[[Any], Any]], step: Any, name: str) -> None:
    """Calls each observer with a step.

    Args:
      observers: The observers.
      step: A nest of tensors, such as a `Trajectory` `[B, ...]`.
      name: The name of the argument that has the observers, for the error.

    Raises:
      ValueError: In a graph, an observer added no operation that has an effect, so it
        would do nothing when the graph runs.
    """
    for observer in observers:
        if tf.executing_eagerly():
            observer(step)
            continue
        before = graph_mark()
        observer(step)
        if not added_effect_since(before):
            raise ValueError(
                f"{name}: got {observer!r}, which runs in Python alone, expected an "
                "observer that changes a variable, because the loop is one graph: "
                "Python runs only once, when the graph is built, and would see no "
                "step. Keep its numbers in a tf.Variable or a TF metric, or give "
                "train.host_observer(function), which calls the function at each step "
                "with NumPy arrays."
            )


class HostObserver:
    """Calls a Python function with the arrays of each step.

    See `tfrl.train.host_observer`, which makes one.
    """

    # See the function of the same name.
    calls_python = True

    def __init__(self, function: Callable[[Any], Any]) -> None:
        """Creates the observer.

        Args:
          function: A function that takes each step as a nest of NumPy arrays.

        Raises:
          TypeError: `function` cannot be called.
        """
        if not callable(function):
            raise TypeError(
                f"function: got {function!r}, expected a function of a Trajectory of "
                "NumPy arrays; define one, such as def record(frame): ..."
            )
        self._function = function
        self._channel = host_calls.CallChannel()

    def __repr__(self) -> str:
        return f"host_observer({self._function!r})"

    @tf.autograph.experimental.do_not_convert
    def __call__(self, step: Any) -> None:
        """Calls the function, now or whenever the graph being built runs.

        Args:
          step: A nest of tensors or arrays.

        Raises:
          NotImplementedError: XLA compiles the graph, and a shape is not fully defined
            or a dtype cannot be passed to Python.
        """
        leaves = tf.nest.flatten(step)
        # The graph keeps the function, which must not keep the graph's tensors.
        structure = tf.nest.map_structure(lambda _: None, step)

        def call(*arrays: Any) -> list[Any]:
            # Copies, because TensorFlow and environments reuse the arrays' memory.
            copies = [np.array(array) for array in arrays]
            self._function(tree.unflatten_as(structure, copies))
            return []

        if tf.executing_eagerly():
            call(*leaves)
            return
        inputs = [tf.convert_to_tensor(leaf) for leaf in leaves]
        host_calls.call(call, inputs, [], self._channel, name="host_observer")

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the function's own exception instead of a `tf.errors.OpError`.

        The loops and drivers of tfrl run in this context. Around your own
        `tf.function`, write `with observer.reraise(): ...`.
        """
        with self._channel.raising():
            yield

    def has_failed(self) -> tf.Tensor:
        """Returns a bool scalar: whether a call from a compiled program has raised."""
        return self._channel.has_failed()


def calls_python(observer: Any) -> bool:
    """Whether an observer calls Python at each step, as a `HostObserver` does."""
    return getattr(observer, "calls_python", False)


def have_failed(observers: Iterable[Any]) -> list[tf.Tensor]:
    """Returns for each host observer whether it has raised in a compiled program.

    Such a program does not stop at an exception. A loop in it should end if one of
    these bool scalars is True; `reraise` then raises the exception.
    """
    return [observer.has_failed() for observer in observers if calls_python(observer)]


@contextlib.contextmanager
def reraise(observers: Iterable[Any]) -> Iterator[None]:
    """Raises the exceptions of host observers instead of a `tf.errors.OpError`."""
    with contextlib.ExitStack() as stack:
        for observer in filter(calls_python, observers):
            stack.enter_context(observer.reraise())
        yield


# A stateful operation that changes nothing.
_READS = frozenset({"ReadVariableOp"})


class GraphMark(NamedTuple):
    """A moment while a graph is built.

    Attributes:
      graph: The graph.
      num_operations: The number of its operations.
      substitutes: The tensors that replace variables in the graph, if there are any.
    """

    graph: tf.Graph
    num_operations: int
    substitutes: list[tf.Tensor]


@tf.autograph.experimental.do_not_convert
def graph_mark() -> GraphMark:
    """Returns a mark of the graph's current state, for `added_effect_since`."""
    graph = tf.compat.v1.get_default_graph()
    return GraphMark(graph, len(graph.get_operations()), _substitutes())


@tf.autograph.experimental.do_not_convert
def added_effect_since(mark: GraphMark) -> bool:
    """Whether a stateful operation was added to the graph after `mark` was made.

    Stateful operations change variables, write files, print or call Python. An
    assignment to a substituted variable counts as one.
    """
    added = mark.graph.get_operations()[mark.num_operations :]
    if any(op.op_def.is_stateful and op.type not in _READS for op in added):
        return True
    before = mark.substitutes
    return any(a is not b for a, b in zip(before, _substitutes(), strict=True))


def _substitutes() -> list[tf.Tensor]:
    substitution = variable_substitution.active()
    return [] if substitution is None else substitution.tensors()
