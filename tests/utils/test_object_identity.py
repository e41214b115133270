"""Containers that compare by identity."""

import gc
import weakref

import pytest
import tensorflow as tf

from tfrl.utils import object_identity


class Thing:
    """All of these are equal, and none can be hashed."""

    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, Thing)


def test_references_of_one_object_are_equal():
    x, y = [1], [1]
    assert object_identity.Reference(x) == object_identity.Reference(x)
    assert object_identity.Reference(x) != object_identity.Reference(y)
    assert object_identity.Reference(x) != x
    assert object_identity.Reference(x).deref() is x
    assert "[1]" in repr(object_identity.Reference(x))


@pytest.mark.parametrize(
    "kind",
    [
        object_identity.ObjectIdentityDictionary,
        object_identity.ObjectIdentityWeakKeyDictionary,
    ],
)
def test_dictionaries_tell_equal_keys_apart(kind):
    a, b, c = Thing(), Thing(), Thing()
    values = kind()
    values[a], values[b] = 1, 2
    values[a] = 3
    assert (values[a], values[b], len(values)) == (3, 2, 2)
    assert [key is thing for key, thing in zip(values, (a, b), strict=True)]
    assert c not in values
    with pytest.raises(KeyError):
        values[c]
    del values[a]
    assert list(values.values()) == [2]


@pytest.mark.parametrize(
    "kind",
    [object_identity.ObjectIdentitySet, object_identity.ObjectIdentityWeakSet],
)
def test_sets_tell_equal_members_apart(kind):
    a, b, c = Thing(), Thing(), Thing()
    things = kind([a])
    things.update([b, a])
    assert (len(things), a in things, c in things) == (2, True, False)
    assert [thing is b for thing in things.intersection([b, c])] == [True]
    assert [thing is a for thing in things.difference([b, c])] == [True]
    things.discard(a)
    things.discard(c)
    assert [thing is b for thing in things] == [True]
    things.add(c)
    things.clear()
    assert not things


def test_weak_containers_keep_nothing_alive():
    kept, dropped = Thing(), Thing()
    values = object_identity.ObjectIdentityWeakKeyDictionary()
    things = object_identity.ObjectIdentityWeakSet([kept, dropped])
    values[kept], values[dropped] = 1, 2
    alive = weakref.ref(dropped)
    del dropped
    gc.collect()
    assert alive() is None
    assert (len(values), len(things)) == (1, 1)
    assert kept in things
    assert values[kept] == 1


def test_variables_are_members_though_they_compare_elementwise():
    a, b = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    variables = object_identity.ObjectIdentitySet([a])
    assert a in variables
    assert b not in variables
