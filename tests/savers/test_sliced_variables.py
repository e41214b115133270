import pathlib
import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.train import memory
from tfrl.replay_buffers import (
    FrameStacking,
    Table,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.savers import checkpoint_files, sliced_variables, whole_checkpoints
from tfrl.trajectories import trajectory


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(sliced_variables, "SLICE_BYTES", 1_000)


SPEC = {
    "bytes": tf.TensorSpec([7], tf.uint8),
    "words": tf.TensorSpec([3], tf.int32),
    "floats": tf.TensorSpec([2, 2], tf.float32),
    "flag": tf.TensorSpec([], tf.bool),
}


def filled(seed, kind=Table):
    table = kind(SPEC, 101)
    rng = np.random.default_rng(seed)
    values = {
        "bytes": rng.integers(0, 256, (101, 7), np.uint8),
        "words": rng.integers(-(2**31), 2**31, (101, 3), np.int32),
        "floats": rng.normal(size=(101, 2, 2)).astype(np.float32),
        "flag": rng.integers(0, 2, 101) > 0,
    }
    table.write(tf.range(101), values)
    return table, values


def check_holds(table, values):
    tf.nest.map_structure(
        np.testing.assert_array_equal,
        tf.nest.map_structure(np.asarray, table.read(tf.range(101))),
        values,
    )


def test_a_table_is_written_in_slices_and_read_back(tmp_path):
    table, values = filled(0)
    path = tf.train.Checkpoint(table=table).write(str(tmp_path / "ckpt-1"))
    # 707, 1,212 and 1,616 bytes are sliced; 101 bytes are not.
    assert len(list(tmp_path.glob("ckpt-1.data-*"))) == 1 + 2 + 2 + 1
    assert not list(tmp_path.glob("*_temp"))
    other, _ = filled(1)
    status = tf.train.Checkpoint(table=other).read(path)
    status.assert_consumed()
    check_holds(other, values)


def test_a_checkpoint_shows_whole_variables(tmp_path):
    root = tf.train.Checkpoint(table=filled(0)[0])
    path = root.write(str(tmp_path / "ckpt-1"))
    reader = checkpoint_files.read_whole(path)
    assert checkpoint_files.compare(reader, root) == ([], [])
    larger = tf.train.Checkpoint(table=Table(SPEC, 102))
    changed, _ = checkpoint_files.compare(reader, larger)
    assert len(changed) == 4
    key = "table/_storage/bytes/.ATTRIBUTES/VARIABLE_VALUE"
    parts = dict(sliced_variables.read_tensor(reader, path, key))
    whole = np.concatenate([np.asarray(part) for part in parts.values()])
    np.testing.assert_array_equal(whole, reader.get_tensor(key))


def test_earlier_checkpoints_hold_whole_variables_and_are_read(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sliced_variables, "SLICE_BYTES", 2**26)
        table, values = filled(0)
        path = tf.train.Checkpoint(table=table).write(str(tmp_path / "ckpt-1"))
    assert len(list(tmp_path.glob("ckpt-1.data-*"))) == 1
    other, _ = filled(1)
    tf.train.Checkpoint(table=other).read(path).assert_consumed()
    check_holds(other, values)


def test_slices_of_another_size_are_read(tmp_path, monkeypatch):
    table, values = filled(0)
    path = tf.train.Checkpoint(table=table).write(str(tmp_path / "ckpt-1"))
    other, _ = filled(1)
    monkeypatch.setattr(sliced_variables, "SLICE_BYTES", 300)
    tf.train.Checkpoint(table=other).read(path).assert_consumed()
    check_holds(other, values)


@pytest.mark.parametrize("number", range(4))
def test_a_damaged_slice_is_noticed_and_the_one_before_restored(tmp_path, number):
    buffer = TFUniformReplayBuffer(tf.TensorSpec([300], tf.uint8), 1, 9)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, buffer=buffer)
    buffer.add_batch(tf.ones([1, 300], tf.uint8))
    checkpointer.save(1)
    buffer.add_batch(tf.fill([1, 300], tf.constant(2, tf.uint8)))
    checkpointer.save(2)
    file = sorted(tmp_path.glob("ckpt-2.data-*"))[number]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="CHECKPOINT DAMAGED"):
        restored = checkpointer.initialize_or_restore()
    assert restored.endswith("ckpt-1")
    assert int(buffer.num_frames()) == 1


def peak_megabytes(function):
    """How far the memory rose above what it was while the function ran."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # Resets the peak.
    before = memory.resident_megabytes()
    function()
    status = pathlib.Path("/proc/self/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 2**10
    return peak - before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", [TFUniformReplayBuffer, TFPrioritizedReplayBuffer])
def test_no_second_copy_of_a_large_buffer_is_made(tmp_path, monkeypatch, kind):
    monkeypatch.undo()
    observation = tf.TensorSpec([84, 84, 4], tf.uint8)
    spec = trajectory.Trajectory(
        *(tf.TensorSpec([], tf.int32), observation, tf.TensorSpec([], tf.int64), ()),
        *(tf.TensorSpec([], tf.int32), tf.TensorSpec([]), tf.TensorSpec([])),
    )
    frame = tf.nest.map_structure(lambda x: tf.zeros([1, *x.shape], x.dtype), spec)
    buffers = []

    def make():
        buffers.append(kind(spec, 1, 142_000, row_format=FrameStacking(4)))
        for _ in range(3):
            # A write by rows, after which TensorFlow copies what it reads.
            buffers[0].add_batch(frame)

    size = 142_000 * 84 * 84 / 2**20
    assert size > 950
    assert peak_megabytes(make) < size + 300
    buffer = buffers[0]

    def save():
        whole_checkpoints.Checkpointer(tmp_path, buffer=buffer).save(1)

    def restore():
        assert whole_checkpoints.Checkpointer(tmp_path, buffer=buffer).restored_path

    for function in (save, restore):
        assert peak_megabytes(function) < 300
    assert int(buffer.num_frames()) == 3
