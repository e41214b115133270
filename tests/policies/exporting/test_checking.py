"""What the check of an export allows, on functions made by hand."""

import types

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies.exporting import checking
from tfrl.specs import tensor_spec


class Fixed:
    """Has the outputs of a policy whose logits are the observation."""

    def __init__(self):
        spec = tensor_spec.BoundedTensorSpec([3], tf.float32, -4.0, 4.0)
        self.inputs = {"observation": spec}

    def trace(self):
        return lambda x: {"logits": x, "action": tf.argmax(x, -1)}


def act(change=0.0, action=0):
    def call(inputs):
        logits = inputs["observation"]
        return {"logits": logits + change, "action": logits.argmax(-1) + action}

    return call


def test_small_differences_are_allowed_and_larger_ones_are_not():
    checking.check(act(3e-5), Fixed())  # The largest logit is near 4.
    with pytest.raises(ValueError, match=r"^logits differs by .*e-05, more than 4e-05"):
        checking.check(act(6e-5), Fixed())
    with pytest.raises(ValueError, match=r"^action differs for 1000 of 1000 obs"):
        checking.check(act(action=1), Fixed())
    with pytest.raises(ValueError, match=r"^logits differs by nan"):
        checking.check(act(np.nan), Fixed())


def test_an_action_may_differ_where_two_logits_are_equal(monkeypatch):
    def equal(function, count, seed):
        return {"observation": np.ones([count, 3], np.float32)}

    monkeypatch.setattr(checking, "random_inputs", equal)
    checking.check(act(action=1), Fixed())


def test_random_inputs_keep_to_their_specs():
    inputs = {
        "observation/a": tensor_spec.BoundedTensorSpec(
            [2], tf.float32, [0.0, -3e38], [1.0, 3e38]
        ),
        "observation/b": tensor_spec.BoundedTensorSpec([], tf.int64, 2, 3),
        "observation/c": tf.TensorSpec([], tf.bool),
        "state": tf.TensorSpec([2], tf.float32),
    }

    found = checking.random_inputs(types.SimpleNamespace(inputs=inputs), 1000, 0)
    first, second = found["observation/a"].T
    assert 0 <= first.min() < 0.1 < 0.9 < first.max() <= 1
    assert 2 < np.abs(second).max() < 6  # Normal, where there are no bounds.
    assert {*found["observation/b"].tolist()} == {2, 3}
    assert {*found["observation/c"].tolist()} == {False, True}
    assert not found["state"][:500].any()
    assert found["state"][500:].all()
