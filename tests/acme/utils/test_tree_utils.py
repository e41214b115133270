"""Functions of nests of arrays."""

import numpy as np
import pytest

from tfrl.acme.utils import tree_utils

NEST = {"a": np.array([1, 2]), "b": (np.array([3.0, 4.0]),)}


def test_a_function_of_leaves():
    doubled = tree_utils.fast_map_structure(lambda x, y: x + y, NEST, NEST)
    assert doubled["a"].tolist() == [2, 4]
    assert doubled["b"][0].tolist() == [6, 8]
    assert tree_utils.tree_map(len)(NEST) == {"a": 2, "b": (2,)}


def test_a_function_of_paths_and_leaves():
    paths = tree_utils.fast_map_structure_with_path(lambda path, x, y: path, NEST, NEST)
    assert paths == {"a": ("a",), "b": (("b", 0),)}


def test_stacking_and_unstacking():
    items = [{"a": 1, "b": (np.zeros(2),)}, {"a": 2, "b": (np.ones(2),)}]
    stacked = tree_utils.stack_sequence_fields(items)
    assert stacked["a"].tolist() == [1, 2]
    assert stacked["b"][0].shape == (2, 2)
    first, second = tree_utils.unstack_sequence_fields(stacked, 2)
    assert (first["a"], second["a"]) == (1, 2)
    assert second["b"][0].tolist() == [1, 1]


def test_arrays_of_different_shapes_become_objects():
    stacked = tree_utils.stack_sequence_fields([np.zeros(2), np.zeros(3)])
    assert stacked.dtype == object
    assert stacked[1].shape == (3,)
    alike = tree_utils.stack_sequence_fields([np.zeros((2, 3)), np.zeros((2, 4))])
    assert [each.shape for each in alike] == [(2, 3), (2, 4)]


def test_nothing_to_stack_is_refused():
    with pytest.raises(ValueError, match="sequence: got an empty one"):
        tree_utils.stack_sequence_fields([])


def test_structures_are_broadcast():
    assert tree_utils.broadcast_structures(1, 2) == (1, 2)
    assert tree_utils.broadcast_structures(1, {"a": 2, "b": 3}) == (
        {"a": 1, "b": 1},
        {"a": 2, "b": 3},
    )
    with pytest.raises(ValueError, match="structure"):
        tree_utils.broadcast_structures({"a": 1}, {"b": 1})
