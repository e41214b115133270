"""Explains the errors of programs that XLA cannot compile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

_PRINT = (
    "jit_compile: got a program with tf.print, which XLA cannot compile, expected one "
    "without. Print from Python instead, with the observer train.host_observer("
    "function), which a compiled loop calls at each step; or leave jit_compile=False."
)
_PYTHON = (
    "jit_compile: got a program that holds a tf.numpy_function or a tf.py_function, "
    "expected one without, because XLA cannot compile them. A tf.function that steps "
    "a Python environment has one if it was traced outside of the compiled program "
    "first: give that program another tf.function, or the Python function itself. Let "
    "train.host_observer call Python at each step, or leave jit_compile=False."
)
# The operations that XLA names if it does not know them; tf.print formats first.
_EXPLANATIONS = {
    "StringFormat (": _PRINT,
    "PrintV2 (": _PRINT,
    "PyFunc (": _PYTHON,
    "PyFuncStateless (": _PYTHON,
}


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Raises a NotImplementedError that names the cause and the remedy.

    Other errors, and programs with other unsupported operations, are left as they are.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if "unsupported operations" not in error.message:
            raise
        for operation, text in _EXPLANATIONS.items():
            if operation in error.message:
                raise NotImplementedError(text) from error
        raise
