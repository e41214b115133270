"""Mixins of our classes: attributes found elsewhere or not tracked, refused overrides.

The bases of agents, policies and environments have the hooks that TF-Agents' own
subclasses override. A subclass that defines a method of another name, or overrides a
method that must stay unchanged, would be ignored silently; `RefusesOverrides` makes
that an error. It also refuses an override with other arguments than its hook.

A `tf.Module` and a Keras layer track the values of their attributes: dictionaries,
lists and namedtuples become trackable copies of other types, and checkpoints hold an
entry for each. A nest of specs should stay as it was given, which `Untracked` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class Forwards:
    """Looks up in the wrapped object the attributes that are not found here.

    Special names are not looked up, since `copy` and `pickle` ask for some; nor is any
    name before the wrapped object is set.
    """

    # The attribute that holds the wrapped object.
    _forwards_to: ClassVar[str] = "_env"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._forwards_to not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__[self._forwards_to], name)


class Untracked:
    """Mixin of modules and layers with attributes that are not tracked."""

    def _set_untracked(self, name: str, value: Any) -> None:
        """Sets the attribute `name` to `value` itself, which checkpoints then ignore.

        Variables in `value` are saved only if another attribute holds them, too.
        """
        object.__setattr__(self, name, value)


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
    are refused too. `_hook_keywords` lists hooks that are called with keyword
    arguments, and the arguments' names. A subclass may list a hook again.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {}
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
        # Derived classes come last, so that they prevail.
        keywords: dict[str, Sequence[str]] = {}
        for base in reversed(cls.__mro__):
            keywords |= vars(base).get("_hook_keywords", {})
        for name, arguments in keywords.items():
            _check_keywords(cls, name, arguments)


def _check_keywords(cls: type, name: str, keywords: Sequence[str]) -> None:
    override = vars(cls).get(name)
    if not inspect.isfunction(override):
        return
    signature = inspect.signature(override)
    try:
        signature.bind(None, **dict.fromkeys(keywords))
    except TypeError:
        raise TypeError(
            f"{cls.__name__}.{name}: got an override with the arguments {signature}, "
            f"expected {name}(self, {', '.join(keywords)}), with which it is called by "
            "name."
        ) from None
