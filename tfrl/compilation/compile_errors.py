"""Explains the errors of programs that XLA cannot compile."""

from __future__ import annotations

import contextlib
import re
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
# TensorFlow's error if a compiled program uses a variable of another device. The error
# names the variable, and the line that made it.
_ELSEWHERE = re.compile(
    r"Trying to access resource (\S+?)(?:/\d+)? \((.*?)\) located in device "
    r"\S*(/device:\w+:\d+) from device \S*(/device:\w+:\d+)"
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
    """Replaces errors of compilation by errors that name the cause and the remedy.

    It is a NotImplementedError for an operation that XLA cannot compile, and a
    ValueError for a variable that the program cannot reach. Other errors, and programs
    with other unsupported operations, are left as they are.
    """
    try:
        yield
    except tf.errors.OpError as error:
        elsewhere = _ELSEWHERE.search(error.message)
        if elsewhere:
            raise ValueError(_misplaced(*elsewhere.groups())) from error
        if "unsupported operations" not in error.message:
            raise
        for operation, text in _EXPLANATIONS.items():
            if operation in error.message:
                raise NotImplementedError(text) from error
        raise


def _misplaced(name: str, made: str, found: str, expected: str) -> str:
    return (
        f"jit_compile: the compiled program on {expected} uses the variable {name} "
        f"({made}) on {found}, which it cannot reach, expected variables on its own "
        f"device; make this one inside of tf.device({expected!r}), with another dtype "
        "if it is int32, because TensorFlow has no variables of int32 on a GPU; or "
        "leave jit_compile=False."
    )
