"""Old paths of modules that have moved."""

import importlib
import sys
import types
import warnings

import pytest

from tfrl.utils import moved


@pytest.fixture
def old_module(monkeypatch):
    """`old_place`, whose contents are in `new_place` now."""
    new = types.ModuleType("new_place")
    new.answer, new.other = 42, 43
    old = types.ModuleType("old_place")
    old.__getattr__ = moved.moved("old_place", "new_place")
    monkeypatch.setitem(sys.modules, "new_place", new)
    monkeypatch.setitem(sys.modules, "old_place", old)
    return old


def test_a_name_is_found_and_the_warning_points_at_who_asked(old_module):
    with pytest.warns(
        DeprecationWarning, match=r"old_place\.answer has moved to new_place\.answer;"
    ) as caught:
        from old_place import answer
    assert answer == 42
    assert [warning.filename for warning in caught] == [__file__]


def test_each_name_warns_once(old_module):
    with pytest.warns(DeprecationWarning, match="has moved") as caught:
        assert [old_module.answer, old_module.answer, old_module.other] == [42, 42, 43]
    assert len(caught) == 2


def test_a_name_that_does_not_exist_is_an_attribute_error(old_module):
    with pytest.raises(
        AttributeError, match="'old_place' has moved to 'new_place', which has no attr"
    ):
        _ = old_module.question


def test_what_python_itself_asks_for_warns_of_nothing(old_module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(old_module, "__path__")


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("utils.discounting", "losses.discounting", "shift_values"),
        ("utils.loss_aggregation", "losses.aggregation", "aggregate_losses"),
    ],
)
def test_the_modules_that_have_moved_are_found_at_their_old_paths(old, new, name):
    module = importlib.import_module(f"tfrl.{old}")
    with pytest.warns(DeprecationWarning, match=f"has moved to tfrl.{new}.{name}"):
        found = getattr(module, name)
    assert found is getattr(importlib.import_module(f"tfrl.{new}"), name)
