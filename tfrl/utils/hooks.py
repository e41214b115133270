"""Refuses overrides that would never be called.

The bases of agents, policies and environments have the hooks that TF-Agents' own
subclasses override. A subclass that defines a method of another name, or overrides a
method that must stay unchanged, would be ignored silently; `RefusesOverrides` makes
that an error. It also refuses an override with other arguments than its hook.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
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
    are refused too. `_hook_arguments` lists hooks that are called with positional
    arguments, and the names of these; `_hook_keywords` hooks that are called with
    keyword arguments. A subclass may list a hook again.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {}
    _hook_arguments: ClassVar[Mapping[str, Sequence[str]]] = {}
    _hook_keywords: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Checks a new subclass.

        Raises:
          TypeError: If the subclass overrides a method that one of its bases refuses,
            or a hook by a method that cannot be called with the hook's arguments.
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
        for name, arguments in _listed(cls, "_hook_arguments").items():
            _check_arguments(cls, name, arguments, arguments, {})
        for name, arguments in _listed(cls, "_hook_keywords").items():
            _check_arguments(cls, name, arguments, (), dict.fromkeys(arguments))


def _listed(cls: type, attribute: str) -> dict[str, Sequence[str]]:
    """Returns the hooks that a class and its bases list; derived classes come first."""
    listed: dict[str, Sequence[str]] = {}
    for base in reversed(cls.__mro__):
        listed |= vars(base).get(attribute, {})
    return listed


def _check_arguments(
    cls: type, name: str, expected: Sequence[str], args: Any, kwargs: Any
) -> None:
    override = vars(cls).get(name)
    if not inspect.isfunction(override):
        return
    signature = inspect.signature(override)
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError:
        names = " by name" if kwargs else ""
        raise TypeError(
            f"{cls.__name__}.{name}: got an override with the arguments {signature}, "
            f"expected {name}(self, {', '.join(expected)}), with which it is "
            f"called{names}."
        ) from None
