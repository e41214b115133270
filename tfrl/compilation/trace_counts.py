"""Makes TensorFlow count the traces of each object's methods separately.

TensorFlow warns of "retracing" after five traces in ten calls, and counts all functions
that run the same code together. So it would warn of the fifth loop or agent in a
process, although each of them is traced once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def of_one_object(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a bound method as a callable whose traces are counted separately.

    Pass the result to `tf.function`. Other callables are returned unchanged.
    """
    if not inspect.ismethod(function):
        return function
    # TensorFlow finds the code of functions and methods, but not of partials.
    alone: Any = functools.partial(function)
    alone.__name__ = function.__name__
    return alone
