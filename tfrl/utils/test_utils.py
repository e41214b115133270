"""TF-Agents' base class for unit tests, with its helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class TestCase(tf.test.TestCase):
    """`tf.test.TestCase`, under the name from which tests for TF-Agents derive."""


def contains(list1: Sequence[Any], list2: Sequence[Any]) -> bool:
    """Returns whether each array (or number) of `list2` equals one of `list1`."""
    return all(any(np.array_equal(item, other) for other in list1) for item in list2)


def main() -> None:
    """Runs the tests of the module that calls it."""
    tf.test.main()
