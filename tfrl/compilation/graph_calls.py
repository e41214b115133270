"""Calls Python from graphs, and keeps the called objects no longer than the graphs.

TensorFlow keeps each function that is given to `tf.numpy_function` in a `tf.function`
until the process ends, and with it every object to which the function refers, such as
an environment with its simulator and its processes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals

_ATTRIBUTE = "_tfrl_kept"


def keep_in_graphs(thing: Any) -> bool:
    """Keeps an object alive as long as the graph being built, or an outer graph.

    Returns:
      False if there is no `tf.function` around, so that nothing keeps the object.
    """
    # Of two nested functions, either may live longer than the other.
    graph, found = tf.compat.v1.get_default_graph(), False
    while hasattr(graph, "outer_graph"):
        if not hasattr(graph, _ATTRIBUTE):
            setattr(graph, _ATTRIBUTE, [])
        getattr(graph, _ATTRIBUTE).append(thing)
        graph, found = graph.outer_graph, True
    return found


# AutoGraph would keep the functions that it converts.
@tf.autograph.experimental.do_not_convert
def numpy_function(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    dtypes: Any,
    name: str | None = None,
) -> Any:
    """Calls a Python function like `tf.numpy_function`, without keeping it for ever.

    Args:
      function: A function of arrays that returns arrays.
      inputs: The tensors to pass.
      dtypes: The dtypes of the results.
      name: The name of the operation.
    """
    registered = internals.register_py_function(function)
    if registered is not None:
        kept, token = registered
        if keep_in_graphs(kept):
            return _call_registered(token, inputs, dtypes, name)
    kept = _Kept(function)
    if not keep_in_graphs(kept):
        return tf.numpy_function(function, inputs, dtypes, name=name)
    reference = weakref.ref(kept)

    def call(*arrays: Any) -> Any:
        kept = reference()
        # The graph that runs the call keeps it.
        assert kept is not None
        return kept.function(*arrays)

    return tf.numpy_function(call, inputs, dtypes, name=name)


def _call_registered(
    token: str, inputs: Sequence[Any], dtypes: Any, name: str | None
) -> Any:
    several = isinstance(dtypes, (list, tuple))
    results = tf.raw_ops.PyFunc(
        input=[tf.convert_to_tensor(value) for value in inputs],
        token=token,
        Tout=list(dtypes) if several else [dtypes],
        name=name,
    )
    return results if several else results[0]


class _Kept:
    """Holds a function, because weak references to bound methods do not last."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
