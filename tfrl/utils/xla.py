"""Decorators for functions that XLA compiles if they run in a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def is_xla_available() -> bool:
    """Returns whether XLA compiles for the device on which operations are placed."""
    with tf.init_scope():
        device = tf.constant(0.0).device
    return _compiles_for(device)


def compile_in_graph_mode(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates `fn` to be compiled by XLA when a tf.function calls it.

    In an eager call, or if XLA is not available, `fn` runs unchanged.

    Args:
      fn: A function of nests of tensors; other arguments become tensors.
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tf.nest.map_structure(tf.convert_to_tensor, (args, kwargs))
        if tf.executing_eagerly() or not is_xla_available():
            return fn(*args, **kwargs)
        return tf.function(fn, jit_compile=True, autograph=False)(*args, **kwargs)

    return call


def compile_method_in_graph_mode(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method as `compile_in_graph_mode` decorates a function."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = functools.partial(method, self)
        return compile_in_graph_mode(bound)(*args, **kwargs)

    return call


@functools.cache
def _compiles_for(device: str) -> bool:
    try:
        with tf.init_scope(), tf.device(device):
            tf.function(lambda: tf.constant(0.0), jit_compile=True)()
    except (ValueError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
        return False
    return True
