"""Common types of a program for Acme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tfrl import specs
from tfrl.adders.steps import NStepTransition

NestedArray = Any
NestedTensor = Any
NestedSpec = specs.Array | Iterable["NestedSpec"] | Mapping[Any, "NestedSpec"]
Nest = Any
TensorTransformation = Callable[[NestedTensor], NestedTensor]
TensorValuedCallable = Callable[..., NestedTensor]
Transition = NStepTransition


class Batches(int):
    """A number of batches, where a plain integer is a number of items."""
