import os

import pytest
import tensorflow as tf

from tfrl.savers import checkpointing


def save_some(directory, values):
    """Saves a variable once for each value, numbered from 1."""
    variable = tf.Variable(0.0)
    checkpointer = checkpointing.Checkpointer(directory, variable=variable)
    for number, value in enumerate(values, start=1):
        variable.assign(value)
        checkpointer.save(number)


def restored_value(directory):
    variable = tf.Variable(-1.0)
    checkpointing.Checkpointer(directory, variable=variable)
    return float(variable)


def damage(path):
    with open(path, "r+b") as file:
        file.seek(0)
        file.write(b"\xff" * 8)


def test_a_new_directory_is_created_and_holds_no_checkpoint(tmp_path):
    directory = tmp_path / "a" / "b"
    checkpointer = checkpointing.Checkpointer(directory, variable=tf.Variable(0.0))
    assert directory.is_dir()
    assert not checkpointer.checkpoint_exists


def test_the_latest_checkpoint_is_restored_at_construction(tmp_path):
    save_some(tmp_path, [10.0, 20.0])
    assert restored_value(tmp_path) == 20.0


def test_initialize_or_restore_brings_saved_values_back(tmp_path):
    variable = tf.Variable(1.0)
    checkpointer = checkpointing.Checkpointer(tmp_path, variable=variable)
    checkpointer.save(tf.Variable(7, dtype=tf.int64))
    variable.assign(2.0)
    assert checkpointer.initialize_or_restore().endswith("ckpt-7")
    assert float(variable) == 1.0


def test_only_the_newest_checkpoints_stay(tmp_path):
    variable = tf.Variable(0.0)
    checkpointer = checkpointing.Checkpointer(tmp_path, 2, variable=variable)
    for number in range(5):
        checkpointer.save(number)
    left = sorted(name for name in os.listdir(tmp_path) if name.endswith(".index"))
    assert left == ["ckpt-3.index", "ckpt-4.index"]


def test_numbers_are_ordered_as_numbers_not_as_text(tmp_path):
    variable = tf.Variable(9.0)
    checkpointer = checkpointing.Checkpointer(tmp_path, variable=variable)
    checkpointer.save(9)
    variable.assign(10.0)
    checkpointer.save(10)
    (tmp_path / "checkpoint").unlink()
    assert restored_value(tmp_path) == 10.0


@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, suffix):
    save_some(tmp_path, [10.0, 20.0])
    damage(tmp_path / f"ckpt-2{suffix}")
    with pytest.warns(RuntimeWarning, match="CHECKPOINT DAMAGED[\\s\\S]*ckpt-1"):
        assert restored_value(tmp_path) == 10.0


def test_a_missing_data_file_is_passed_over_with_a_warning(tmp_path):
    save_some(tmp_path, [10.0, 20.0])
    (tmp_path / "ckpt-2.data-00000-of-00001").unlink()
    with pytest.warns(RuntimeWarning, match="CHECKPOINT DAMAGED"):
        assert restored_value(tmp_path) == 10.0


def test_a_lost_state_file_does_not_hide_the_checkpoints(tmp_path):
    save_some(tmp_path, [10.0])
    (tmp_path / "checkpoint").unlink()
    assert restored_value(tmp_path) == 10.0


def test_nothing_but_damaged_checkpoints_is_an_error(tmp_path):
    save_some(tmp_path, [10.0, 20.0])
    for number in (1, 2):
        damage(tmp_path / f"ckpt-{number}.data-00000-of-00001")
    with pytest.raises(checkpointing.CheckpointError, match="none of its 2 checkpoin"):
        restored_value(tmp_path)
