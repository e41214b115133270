"""`Forwards`, a mixin of wrappers that look up attributes in the wrapped object."""

from __future__ import annotations

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
