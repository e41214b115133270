"""Strategies by which a table chooses the items to sample and to remove.

The objects here only say which strategy is wanted; the server does the choosing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True)
class ItemSelector:
    """The base class of the strategies.

    Attributes:
      kind: The strategy's name in a configuration.
      is_deterministic: Whether the state of the table alone decides what is chosen.
    """

    kind: ClassVar[str] = ""
    is_deterministic: ClassVar[bool] = True

    def to_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes an equal selector of; JSON can hold it."""
        return {"kind": self.kind, **dataclasses.asdict(self)}

    def options(self) -> dict[str, Any]:
        """Returns the fields that are set of the selector in a Reverb `TableInfo`."""
        options: dict[str, Any] = {self.kind: dataclasses.asdict(self) or True}
        if self.is_deterministic:
            options["is_deterministic"] = True
        return options


class Fifo(ItemSelector):
    """Chooses the item that was inserted first."""

    kind = "fifo"


class Lifo(ItemSelector):
    """Chooses the item that was inserted last."""

    kind = "lifo"


class Uniform(ItemSelector):
    """Chooses any item with the same probability."""

    kind = "uniform"
    is_deterministic = False


@dataclasses.dataclass(frozen=True)
class Prioritized(ItemSelector):
    """Chooses item `i` with probability `p_i**a / sum_k p_k**a`.

    Source: Schaul et al. 2016, "Prioritized Experience Replay", equation 1. An item of
    priority 0 has no probability, also where `a` is 0; if no item has any, all have the
    same.

    Attributes:
      priority_exponent: The `a` of the equation.
    """

    priority_exponent: float

    kind: ClassVar[str] = "prioritized"
    is_deterministic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Checks the exponent.

        Raises:
          ValueError: If it is not a finite number.
        """
        exponent = float(self.priority_exponent)
        if not math.isfinite(exponent):
            raise ValueError(
                f"Prioritized: priority_exponent is {exponent}; expected a finite "
                "number. Give for example 0.6; 0 makes all positive priorities equal."
            )
        object.__setattr__(self, "priority_exponent", exponent)


class MinHeap(ItemSelector):
    """Chooses the lowest priority; among equals the one whose was set first."""

    kind = "min_heap"

    def options(self) -> dict[str, Any]:
        """Returns the fields that are set of the selector in a Reverb `TableInfo`."""
        return {"heap": {"min_heap": True}, "is_deterministic": True}


class MaxHeap(ItemSelector):
    """Chooses the highest priority; among equals the one whose was set first."""

    kind = "max_heap"

    def options(self) -> dict[str, Any]:
        """Returns the fields that are set of the selector in a Reverb `TableInfo`."""
        return {"heap": {}, "is_deterministic": True}


_KINDS: dict[str, type[ItemSelector]] = {
    selector.kind: selector
    for selector in (Fifo, Lifo, Uniform, Prioritized, MinHeap, MaxHeap)
}


def from_config(config: Mapping[str, Any]) -> ItemSelector:
    """Returns the selector whose `to_config` gave `config`.

    Raises:
      ValueError: If there is no such selector.
    """
    arguments = dict(config)
    kind = arguments.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(
            f"item_selectors.from_config: the kind is {kind!r}; expected one of "
            f"{sorted(_KINDS)}. Take the configuration from a selector's to_config()."
        )
    try:
        return _KINDS[kind](**arguments)
    except TypeError as error:
        raise ValueError(
            f"item_selectors.from_config: {kind!r} came with {arguments}; expected its "
            f"own arguments ({error}). Take the configuration from to_config()."
        ) from error
