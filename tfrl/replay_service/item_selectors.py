"""Strategies that choose the items of a table to sample and to remove.

These objects only name a strategy. The server implements it: see
`engine.tables.selectors`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True)
class ItemSelector:
    """Base class of the strategies.

    Attributes:
      kind: The strategy's name in a configuration.
      is_deterministic: Whether the choice only depends on the state of the table.
    """

    kind: ClassVar[str] = ""
    is_deterministic: ClassVar[bool] = True

    def to_config(self) -> dict[str, Any]:
        """Returns the strategy as a JSON object, for `from_config`."""
        return {"kind": self.kind, **dataclasses.asdict(self)}

    def options(self) -> dict[str, Any]:
        """Returns the fields of the strategy that are set in a Reverb `TableInfo`."""
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
    """Chooses every item with the same probability."""

    kind = "uniform"
    is_deterministic = False


@dataclasses.dataclass(frozen=True)
class Prioritized(ItemSelector):
    """Chooses item `i` with probability `p_i**a / sum_k p_k**a`.

    Source: Schaul et al. 2016, "Prioritized Experience Replay", equation 1. Items of
    priority 0 have probability 0, even if `a` is 0. If all priorities are 0, all items
    have the same probability.

    Attributes:
      priority_exponent: The `a` of the equation.
    """

    priority_exponent: float

    kind: ClassVar[str] = "prioritized"
    is_deterministic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Checks the exponent.

        Raises:
          ValueError: If the exponent is not a finite number.
        """
        exponent = float(self.priority_exponent)
        if not math.isfinite(exponent):
            raise ValueError(
                f"priority_exponent: got {exponent}, expected a finite number; pass, "
                "for example, 0.6, or 0 to make all positive priorities equal."
            )
        object.__setattr__(self, "priority_exponent", exponent)


class MinHeap(ItemSelector):
    """Chooses the item of lowest priority; ties go to the priority set first."""

    kind = "min_heap"

    def options(self) -> dict[str, Any]:
        """Returns the fields of the strategy that are set in a Reverb `TableInfo`."""
        return {"heap": {"min_heap": True}, "is_deterministic": True}


class MaxHeap(ItemSelector):
    """Chooses the item of highest priority; ties go to the priority set first."""

    kind = "max_heap"

    def options(self) -> dict[str, Any]:
        """Returns the fields of the strategy that are set in a Reverb `TableInfo`."""
        return {"heap": {}, "is_deterministic": True}


_KINDS: dict[str, type[ItemSelector]] = {
    selector.kind: selector
    for selector in (Fifo, Lifo, Uniform, Prioritized, MinHeap, MaxHeap)
}


def from_config(config: Mapping[str, Any]) -> ItemSelector:
    """Returns the strategy that a configuration from `to_config` describes.

    Raises:
      ValueError: If the configuration is invalid.
    """
    arguments = dict(config)
    kind = arguments.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(
            f"config: got the kind {kind!r}, expected one of {sorted(_KINDS)}; use the "
            "result of a selector's to_config()."
        )
    try:
        return _KINDS[kind](**arguments)
    except TypeError as error:
        raise ValueError(
            f"config: got {arguments} for {kind!r}, expected its own arguments "
            f"({error}); use the result of a selector's to_config()."
        ) from error
