"""Common types of a program for Acme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tfrl import specs

NestedArray = Any
NestedTensor = Any
NestedSpec: TypeAlias = (
    specs.Array | Iterable["NestedSpec"] | Mapping[Any, "NestedSpec"]
)
Nest = Any
TensorTransformation = Callable[[NestedTensor], NestedTensor]
TensorValuedCallable = Callable[..., NestedTensor]


class Batches(int):
    """A number of batches, where a plain integer is a number of items."""


class Transition(NamedTuple):
    """A transition over one or more steps.

    Attributes:
      observation: The nest of observations before the first action.
      action: The nest of the first action.
      reward: The discounted sum of the rewards; see
        `adders.reverb.n_step.n_step_return`.
      discount: The discount for the value of the next observation. Over `k` steps it
        has `k - 1` factors of the agent's discount.
      next_observation: The nest of observations after the last step.
      extras: The nest of extras of the first step; `()` without any.
    """

    observation: Any
    action: Any
    reward: Any
    discount: Any
    next_observation: Any
    extras: Any = ()
