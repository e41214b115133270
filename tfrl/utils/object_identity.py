"""Sets and dictionaries that compare objects by identity.

They are for objects that cannot be hashed or compared with `==`, such as tensors and
`tf.Variable`s, which compare elementwise.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSet
from typing import Any


class Reference:
    """A hashable stand-in for an object; stand-ins for one object are equal."""

    def __init__(self, wrapped: Any) -> None:
        """Refers to `wrapped`, and keeps it alive."""
        self._wrapped = wrapped
        self._hash = id(wrapped)

    def deref(self) -> Any:
        """Returns the object."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        same_id = self._hash == other._hash
        return self is other or (same_id and self.deref() is other.deref())

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.deref()!r}>"


class _WeakReference(Reference):
    """A stand-in that does not keep its object alive."""

    def __init__(
        self, wrapped: Any, when_dead: Callable[[Reference], Any] | None = None
    ) -> None:
        callback = None if when_dead is None else lambda _: when_dead(self)
        super().__init__(weakref.ref(wrapped, callback))
        self._hash = id(wrapped)

    def deref(self) -> Any:
        return self._wrapped()


class ObjectIdentityDictionary(MutableMapping):
    """A dictionary whose keys are compared by identity, and may be unhashable."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Creates the dictionary from the arguments that `dict` takes."""
        self._items: dict[Reference, Any] = {}
        self.update(*args, **kwargs)

    def _wrap(self, key: Any) -> Reference:
        return Reference(key)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._items[Reference(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[self._wrap(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._items[Reference(key)]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self._items):
            yield reference.deref()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.items())!r})"


class ObjectIdentityWeakKeyDictionary(ObjectIdentityDictionary):
    """An `ObjectIdentityDictionary` that drops keys without other references."""

    def _wrap(self, key: Any) -> Reference:
        return _WeakReference(key, lambda reference: self._items.pop(reference, None))


class ObjectIdentitySet(MutableSet):
    """A set whose members are compared by identity, and may be unhashable."""

    def __init__(self, *args: Iterable[Any]) -> None:
        """Creates the set from the members of iterables."""
        self._members: dict[Reference, None] = {}
        self.update(*args)

    def _wrap(self, item: Any) -> Reference:
        return Reference(item)

    def __contains__(self, item: Any) -> bool:
        return Reference(item) in self._members

    def add(self, key: Any) -> None:
        """Adds a member."""
        self._members[self._wrap(key)] = None

    def discard(self, key: Any) -> None:
        """Removes `key` if it is a member."""
        self._members.pop(Reference(key), None)

    def update(self, *others: Iterable[Any]) -> None:
        """Adds the members of the other iterables."""
        for other in others:
            for item in other:
                self.add(item)

    def clear(self) -> None:
        """Removes all members."""
        self._members.clear()

    def intersection(self, items: Iterable[Any]) -> ObjectIdentitySet:
        """Returns the set of the `items` that are members."""
        return type(self)(item for item in items if item in self)

    def difference(self, items: Iterable[Any]) -> ObjectIdentitySet:
        """Returns the set of the members that are not among the `items`."""
        others = ObjectIdentitySet(items)
        return type(self)(item for item in self if item not in others)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self._members):
            yield reference.deref()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class ObjectIdentityWeakSet(ObjectIdentitySet):
    """An `ObjectIdentitySet` that drops members without other references."""

    def _wrap(self, item: Any) -> Reference:
        return _WeakReference(
            item, lambda reference: self._members.pop(reference, None)
        )
