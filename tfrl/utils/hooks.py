"""Refuses overrides that nobody would call.

The bases of agents, policies and environments have the hooks that TF-Agents' own
subclasses override. A subclass that writes a method of another name, or replaces one
that has to stay as it is, would be ignored without a word; `RefusesOverrides` makes
that an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


def overrides_later(cls: type, name: str, other: str) -> bool:
    """Returns whether `cls` has its `name` from a later class than its `other`.

    A later class is one nearer to `cls` in the order of method resolution.
    """
    for base in cls.__mro__:
        if other in vars(base):
            return False
        if name in vars(base):
            return True
    return False


class RefusesOverrides:
    """Base of classes that refuse some overrides when a subclass is defined.

    A class lists in `_refused_overrides` the methods that its subclasses may not write,
    each with what to write instead. That holds for methods of a mixin, too.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Checks a new subclass.

        Raises:
          TypeError: It overrides a method that one of its bases refuses.
        """
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1:]:
            refused: Mapping[str, str] = vars(base).get("_refused_overrides", {})
            for name, remedy in refused.items():
                if getattr(cls, name, None) is not getattr(base, name, None):
                    raise TypeError(
                        f"{cls.__name__}.{name}: got an override that "
                        f"{base.__name__} would ignore or break at, expected none of "
                        f"this name; {remedy}."
                    )
