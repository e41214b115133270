"""Specs in files."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import trajectory
from tfrl.utils import common

SPEC = trajectory.Trajectory(
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
    common.save_spec(SPEC, path)
    loaded = common.load_spec(path)
    assert type(loaded).__name__ == "Trajectory"
    assert trajectory.Trajectory(*loaded) == tensor_spec.from_spec(SPEC)
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
    write(SPEC, str(path))
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
