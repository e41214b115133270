import pathlib
import re
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import any_pb2, text_format
from tensorflow.core.protobuf import struct_pb2

from tfrl.specs import array_spec, tensor_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec
from tfrl.specs.tensor_spec import BoundedTensorSpec, TensorSpec
from tfrl.trajectories import trajectory
from tfrl.utils import common

PolicyStep = namedtuple("PolicyStep", "action state info")

SPEC = PolicyStep(
    action=BoundedTensorSpec((2,), tf.float32, -1, [1, 2], "action"),
    state=(),
    info={"q": [TensorSpec((None,), tf.int64)], "empty": {}, "list": []},
)

# As TF-Agents 0.19 writes a policy step's spec.
TF_AGENTS_TEXT = r"""
named_tuple_value {
  name: "PolicyStep"
  values { key: "action" value { bounded_tensor_spec_value {
    name: "action" shape { dim { size: 2 } } dtype: DT_FLOAT
    minimum { dtype: DT_FLOAT tensor_shape { } float_val: -1 }
    maximum { dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
              tensor_content: "\000\000\200?\000\000\000@" }
  } } }
  values { key: "state" value { tuple_value { } } }
  values { key: "info" value { dict_value { fields { key: "q" value {
    list_value { values { tensor_spec_value {
      shape { dim { size: -1 } } dtype: DT_INT64 } } } } } } } }
}
"""


def test_file_round_trip_keeps_structure_names_and_bounds(tmp_path):
    path = str(tmp_path / "new" / "folder" / "policy_specs.pbtxt")
    tensor_spec.to_pbtxt_file(path, SPEC)
    loaded = tensor_spec.from_pbtxt_file(path)
    tf.nest.assert_same_structure(loaded, SPEC)
    assert tf.nest.flatten(loaded) == tf.nest.flatten(SPEC)
    assert type(loaded).__name__ == "PolicyStep"
    assert loaded._fields == ("action", "state", "info")
    assert loaded == SPEC


def test_file_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tensor_spec.to_pbtxt_file("specs.pbtxt", SPEC.action)
    assert tensor_spec.from_pbtxt_file("specs.pbtxt") == SPEC.action


def test_reads_what_tf_agents_wrote():
    proto = text_format.Parse(TF_AGENTS_TEXT, struct_pb2.StructuredValue())
    assert tensor_spec.from_proto(proto) == SPEC._replace(
        info={"q": SPEC.info["q"]},
    )


def test_reads_a_file_that_was_written_before_the_traversal_was_shared():
    # By tensor_spec.to_pbtxt_file at commit 164c8db.
    path = pathlib.Path(__file__).with_name("data") / "policy_specs.pbtxt"
    loaded = tensor_spec.from_pbtxt_file(str(path))
    assert type(loaded).__name__ == "PolicyStep"
    text = TensorSpec(None, tf.string)
    assert loaded == SPEC._replace(
        info={"q": SPEC.info["q"], "empty": {}, "text": text}
    )


def test_writes_what_it_wrote_before_the_traversal_was_shared():
    path = pathlib.Path(__file__).with_name("data") / "policy_specs.pbtxt"
    before = text_format.Parse(path.read_text(), struct_pb2.StructuredValue())
    assert tensor_spec.to_proto(tensor_spec.from_proto(before)) == before


def test_tensorflow_decodes_what_is_written():
    decoded = tf.__internal__.saved_model.decode_proto(tensor_spec.to_proto(SPEC))
    tf.nest.assert_same_structure(decoded, SPEC)
    assert decoded.info == SPEC.info
    np.testing.assert_array_equal(decoded.action.maximum, [1, 2])
    assert decoded.action.name == "action"


def test_array_specs_are_written_as_tensor_specs():
    spec = [
        ArraySpec((2,), np.uint8, "a"),
        BoundedArraySpec((), np.int64, 0, 5, "b"),
    ]
    assert tensor_spec.from_proto(tensor_spec.to_proto(spec)) == [
        TensorSpec((2,), tf.uint8, "a"),
        BoundedTensorSpec((), tf.int64, 0, 5, "b"),
    ]


@pytest.mark.parametrize(
    "dtype",
    [tf.bool, tf.uint8, tf.int64, tf.uint64, tf.float16, tf.bfloat16, tf.float64],
)
def test_limits_of_every_dtype_are_kept(dtype):
    spec = BoundedTensorSpec((), dtype)
    assert tensor_spec.from_proto(tensor_spec.to_proto(spec)) == spec


def test_unknown_ranks_are_kept():
    spec = TensorSpec(None, tf.string)
    assert tensor_spec.from_proto(tensor_spec.to_proto(spec)) == spec


def test_packed_protos():
    packed = any_pb2.Any()
    packed.Pack(tensor_spec.to_proto(SPEC))
    assert tensor_spec.from_packed_proto(packed) == SPEC


def test_other_leaves_are_named():
    with pytest.raises(TypeError, match=r"spec: got 3 of type int in the nest"):
        tensor_spec.to_proto({"a": 3})


def test_other_protos_are_named():
    with pytest.raises(ValueError, match=r"a value of kind 'int64_value'"):
        tensor_spec.from_proto(struct_pb2.StructuredValue(int64_value=3))
    with pytest.raises(ValueError, match=r"a value of kind None"):
        tensor_spec.from_proto(struct_pb2.StructuredValue())


TRAJECTORY = trajectory.Trajectory(
    step_type=tf.TensorSpec([], tf.int32, "step_type"),
    observation={
        "image": tf.TensorSpec([None, 4], tf.uint8),
        "list": [tf.TensorSpec([])],
    },
    action=tensor_spec.BoundedTensorSpec([2], tf.float32, -1, [1, 2], "action"),
    policy_info=(),
    next_step_type=tf.TensorSpec([], tf.int32),
    reward=array_spec.ArraySpec((3,), np.float32, "reward"),
    discount=tf.TensorSpec([], tf.float32),
)


def test_specs_come_back_from_a_file_with_their_bounds(tmp_path):
    path = str(tmp_path / "new" / "spec.pb")
    common.save_spec(TRAJECTORY, path)
    loaded = common.load_spec(path)
    assert type(loaded).__name__ == "Trajectory"
    assert trajectory.Trajectory(*loaded) == tensor_spec.from_spec(TRAJECTORY)
    np.testing.assert_array_equal(loaded.action.maximum, [1, 2])


def test_a_file_without_a_folder_is_written_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common.save_spec([tf.TensorSpec([2])], "spec.pb")
    assert common.load_spec("spec.pb") == [tf.TensorSpec([2])]


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (lambda spec, path: common.save_spec(spec, path), common.load_spec),
        (
            lambda spec, path: tensor_spec.to_pbtxt_file(path, spec),
            tensor_spec.from_pbtxt_file,
        ),
    ],
)
def test_a_damaged_file_gives_specs_or_an_error_that_names_it(tmp_path, write, read):
    path = tmp_path / "spec"
    write(TRAJECTORY, str(path))
    content, messages = path.read_bytes(), []
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=200):
        damaged = bytearray(content)
        damaged[place] ^= rng.integers(1, 256)
        for bad in (bytes(damaged), content[:place]):
            path.write_bytes(bad)
            try:
                read(str(path))
            except ValueError as error:
                messages.append(str(error))
    assert len(messages) > 200
    pattern = re.compile(rf"{path}: cannot be read .*, expected a", re.DOTALL)
    assert all(map(pattern.match, messages))
