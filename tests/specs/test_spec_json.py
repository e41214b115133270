"""Specs come back from JSON as they went there."""

import collections
import json
import subprocess
import sys
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec, spec_json, tensor_spec


class Step(NamedTuple):
    observation: object
    reward: object


def round_trip(nest):
    return spec_json.decode(json.loads(json.dumps(spec_json.encode(nest))))


@pytest.mark.parametrize(
    "nest",
    [
        tf.TensorSpec([2, 3], tf.float32, "x"),
        tf.TensorSpec([None, 3], tf.bfloat16),
        tf.TensorSpec(None, tf.uint8),
        tf.TensorSpec([], tf.bool),
        [tf.TensorSpec([1], tf.int64), (tf.TensorSpec([], tf.float64), [])],
        {"b": tf.TensorSpec([1], tf.int64), "a": {"c": tf.TensorSpec([], tf.half)}},
        {3: tf.TensorSpec([], tf.int32), 1: tf.TensorSpec([2], tf.int32)},
        Step({"o": tf.TensorSpec([4], tf.float32)}, tf.TensorSpec([], tf.float32)),
    ],
)
def test_tensor_specs_come_back_equal(nest):
    decoded = round_trip(nest)
    assert decoded == nest
    assert type(decoded) is type(nest)
    tf.nest.assert_same_structure(decoded, nest)


def test_order_of_an_ordered_dict_stays():
    nest = collections.OrderedDict(
        [("z", tf.TensorSpec([], tf.int32)), ("a", tf.TensorSpec([], tf.int32))]
    )
    decoded = round_trip(nest)
    assert type(decoded) is collections.OrderedDict
    assert list(decoded) == ["z", "a"]


@pytest.mark.parametrize(
    ("minimum", "maximum"),
    [(0, 255), ([0, 1, 2], [7, 8, 9]), ([1, 1, 1], [2, 2, 2])],
)
def test_bounds_come_back_equal(minimum, maximum):
    spec = tensor_spec.BoundedTensorSpec([3], tf.uint8, minimum, maximum, "b")
    decoded = round_trip(spec)
    assert decoded == spec
    np.testing.assert_array_equal(
        np.broadcast_to(decoded.minimum, 3), np.broadcast_to(minimum, 3)
    )


def test_float_limits_come_back_exactly():
    spec = tensor_spec.BoundedTensorSpec([2], tf.float32, -0.1, np.inf)
    assert round_trip(spec) == spec


def test_bounds_of_bfloat16_are_numbers():
    spec = array_spec.BoundedArraySpec((), ml_dtypes.bfloat16, -1.5, 2)
    assert spec_json.encode(spec)["minimum"] == -1.5


def test_array_specs_become_tensor_specs():
    decoded = round_trip({"a": array_spec.ArraySpec((2, None), np.int32, "a")})
    assert decoded == {"a": tf.TensorSpec([2, None], tf.int32, "a")}


def test_bounds_of_images_are_not_written_pixel_by_pixel():
    spec = array_spec.BoundedArraySpec(
        (84, 84, 4), np.uint8, np.zeros((84, 84, 4)), np.full((84, 84, 4), 255)
    )
    assert len(json.dumps(spec_json.encode(spec))) < 200


def test_named_tuple_of_an_unknown_module_is_made_anew_and_once():
    encoded = spec_json.encode(Step(tf.TensorSpec([], tf.int32), ()))
    encoded["module"] = "antigravity"  # Importing it would open a browser.
    first, second = spec_json.decode(encoded), spec_json.decode(encoded)
    assert "antigravity" not in sys.modules
    assert type(first) is type(second) is not Step
    assert type(first).__name__ == "Step"
    assert first._fields == Step._fields


def test_class_with_other_fields_is_not_taken_for_the_named_tuple():
    encoded = spec_json.encode(Step((), ()))
    encoded["fields"] = ["observation", "other"]
    assert spec_json.decode(encoded)._fields == ("observation", "other")


@pytest.mark.parametrize("target", ["os.system", "subprocess.Popen", "Step.__init__"])
def test_only_named_tuple_classes_are_found(target):
    module, _, name = target.rpartition(".")
    encoded = {"namedtuple": name, "module": module, "fields": ["a"]}
    encoded["values"] = [{"list": []}]
    decoded = spec_json.decode(encoded)
    assert isinstance(decoded, tuple)
    assert decoded.a == []


def test_leaves_are_in_the_order_of_tf_nest():
    nest = {
        "z": Step(tf.TensorSpec([1], tf.int32), [tf.TensorSpec([2], tf.int32)]),
        "a": collections.OrderedDict(
            y=tf.TensorSpec([3], tf.int32), b=tf.TensorSpec(None, tf.int32)
        ),
    }
    leaves = spec_json.leaves(spec_json.encode(nest))
    expected = [spec.shape for spec in tf.nest.flatten(nest)]
    assert [tf.TensorShape(leaf.shape) for leaf in leaves[1:]] == expected[1:]
    assert leaves[0].shape is None
    assert expected[0].rank is None
    assert [leaf.path for leaf in leaves][-1] == ("z", 1, 0)


@pytest.mark.parametrize(
    "leaf",
    [None, 3, np.zeros(3), tf.TensorSpec([], tf.string), tf.RaggedTensorSpec([None])],
)
def test_leaf_that_is_no_spec_of_numbers_is_refused(leaf):
    with pytest.raises(ValueError, match=r"Unsupported signature spec.*'a', 0"):
        spec_json.encode({"a": [leaf]})


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"tensor": []},
        {"list": {}},
        {"dict": [1]},
        {"dict": {}, "list": []},
        {"dtype": "float32", "shape": 3},
        {"dtype": "float32", "shape": [-1]},
        {"dtype": "object", "shape": []},
        {"namedtuple": "A", "fields": ["a"], "values": []},
        {"namedtuple": "A", "fields": ["_a"], "values": [{"list": []}]},
    ],
)
def test_broken_json_is_refused(value):
    with pytest.raises(ValueError, match=r"dtype|signature"):
        spec_json.leaves(value)


def test_encoding_and_leaves_need_no_tensorflow():
    code = (
        "import sys, numpy as np\n"
        "from tfrl.specs import spec_json\n"
        "from tfrl.specs.array_spec import ArraySpec\n"
        "value = spec_json.encode([ArraySpec((None, 3), np.float32)])\n"
        "assert spec_json.leaves(value)[0].shape == (None, 3)\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
