"""Acme's tree has tfrl's own objects under Acme's paths."""

import importlib
import inspect

import pytest

# Packages and modules of the tree, and those of tfrl that have the same objects.
SAME = {
    "specs": "specs",
    "tf.losses": "losses",
    "utils.loggers": "loggers",
    "utils.paths": "system.paths",
}


@pytest.mark.parametrize(("path", "origin"), SAME.items())
def test_what_tfrl_has_is_the_same_object_in_the_tree(path, origin):
    module = importlib.import_module(f"tfrl.acme.{path}")
    same = importlib.import_module(f"tfrl.{origin}")
    names = [
        name
        for name in getattr(module, "__all__", vars(module))
        if name in getattr(same, "__all__", vars(same))
        and not name.startswith("_")
        and not inspect.ismodule(getattr(module, name))
    ]
    assert names
    differing = [n for n in names if getattr(module, n) is not getattr(same, n)]
    assert not differing


@pytest.mark.parametrize("name", ["dpg", "huber"])
def test_a_loss_is_a_function_also_after_an_import_of_its_module(name):
    module = importlib.import_module(f"tfrl.acme.tf.losses.{name}")
    losses = importlib.import_module("tfrl.acme.tf.losses")
    assert getattr(losses, name) is getattr(module, name)
    assert callable(getattr(losses, name))


def test_a_number_of_batches_is_an_integer_of_its_own_type():
    types = importlib.import_module("tfrl.acme.types")
    size = types.Batches(4)
    assert isinstance(size, types.Batches)
    assert size * 32 == 128
    assert not isinstance(4, types.Batches)
