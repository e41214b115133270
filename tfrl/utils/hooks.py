"""Refuses overrides that nobody would call.

The bases of agents, policies and environments have the hooks that TF-Agents' own
subclasses override. A subclass that defines a method of another name, or overrides a
method that must stay unchanged, would be ignored silently; `RefusesOverrides` makes
that an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


def overrides_later(cls: type, name: str, other: str) -> bool:
    """Returns whether `cls` takes `name` from a more derived class than `other`.

    A more derived class comes earlier in the method resolution order of `cls`.
    """
    for base in cls.__mro__:
        if other in vars(base):
            return False
        if name in vars(base):
            return True
    return False


class RefusesOverrides:
    """Base of classes that refuse some overrides when a subclass is defined.

    A class lists in `_refused_overrides` the methods that its subclasses may not
    override, each with a remedy for the error text. Overrides inherited from a mixin
    are refused too.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Checks a new subclass.

        Raises:
          TypeError: If the subclass overrides a method that one of its bases refuses.
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
