"""Strategies say what they are, and survive JSON."""

import json

import pytest

from tfrl.replay_service import item_selectors

ALL = [
    item_selectors.Fifo(),
    item_selectors.Lifo(),
    item_selectors.Uniform(),
    item_selectors.Prioritized(0.6),
    item_selectors.MinHeap(),
    item_selectors.MaxHeap(),
]


@pytest.mark.parametrize("selector", ALL, ids=repr)
def test_configuration_survives_json(selector):
    config = json.loads(json.dumps(selector.to_config()))
    assert item_selectors.from_config(config) == selector


def test_reprs_are_calls():
    assert [repr(selector) for selector in ALL] == [
        "Fifo()",
        "Lifo()",
        "Uniform()",
        "Prioritized(priority_exponent=0.6)",
        "MinHeap()",
        "MaxHeap()",
    ]


def test_only_random_selectors_are_not_deterministic():
    random = [each for each in ALL if not each.is_deterministic]
    assert random == [item_selectors.Uniform(), item_selectors.Prioritized(0.6)]


def test_options_are_those_of_reverbs_table_info():
    assert [selector.options() for selector in ALL] == [
        {"fifo": True, "is_deterministic": True},
        {"lifo": True, "is_deterministic": True},
        {"uniform": True},
        {"prioritized": {"priority_exponent": 0.6}},
        {"heap": {"min_heap": True}, "is_deterministic": True},
        {"heap": {}, "is_deterministic": True},
    ]


def test_selectors_are_immutable_and_hashable():
    selector = item_selectors.Prioritized(1)
    with pytest.raises(AttributeError):
        selector.priority_exponent = 2.0
    assert len({selector, item_selectors.Prioritized(1.0)}) == 1


@pytest.mark.parametrize("exponent", [float("nan"), float("inf")])
def test_exponent_must_be_finite(exponent):
    with pytest.raises(ValueError, match=r"priority_exponent: got .*expected a finite"):
        item_selectors.Prioritized(exponent)


def test_unknown_configurations_are_refused():
    with pytest.raises(
        ValueError, match=r"got the kind 'best', expected one of \['fifo'"
    ):
        item_selectors.from_config({"kind": "best"})
    with pytest.raises(ValueError, match=r"got \{'size': 3\} for 'fifo'"):
        item_selectors.from_config({"kind": "fifo", "size": 3})
