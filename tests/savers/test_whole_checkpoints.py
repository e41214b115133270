import os
import re
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.savers import checkpoint_files, whole_checkpoints


def save_some(directory, values):
    """Saves a variable once for each value, numbered from 1."""
    variable = tf.Variable(0.0)
    checkpointer = whole_checkpoints.Checkpointer(directory, variable=variable)
    for number, value in enumerate(values, start=1):
        variable.assign(value)
        checkpointer.save(number)


def restored_value(directory):
    variable = tf.Variable(-1.0)
    whole_checkpoints.Checkpointer(directory, variable=variable)
    return float(variable)


def test_the_checkpoints_of_another_directory_are_left_alone(tmp_path):
    """TensorFlow would delete them as matches of a pattern."""
    save_some(tmp_path / "run1", [5.0])
    with pytest.raises(ValueError, match=r"ckpt_dir '.*run\*': has '\*'"):
        save_some(tmp_path / "run*", range(30))
    assert [path.name for path in tmp_path.iterdir()] == ["run1"]
    assert restored_value(tmp_path / "run1") == 5


class Chain(keras.layers.Layer):
    """Has its layers in a list, where TensorFlow does not find them."""

    def __init__(self):
        super().__init__()
        self.chain = [keras.layers.Dense(3), keras.layers.Dense(2)]

    def call(self, inputs):
        for layer in self.chain:
            inputs = layer(inputs)
        return inputs


class Around(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = Chain()

    def call(self, inputs):
        return self.inner(inputs)


@pytest.mark.parametrize(
    "make",
    [Chain, Around, lambda: keras.layers.RNN([keras.layers.GRUCell(2)] * 2)],
    ids=["list", "inner list", "stacked cells"],
)
@pytest.mark.parametrize("is_built", [False, True])
def test_weights_that_tensorflow_leaves_out_are_refused(make, is_built, tmp_path):
    layer = make()
    inputs = tf.zeros([1, 4, 2])
    message = r"layer '.*': .*kernel.*\n.*each layer in them a separate attribute"
    if is_built:
        layer(inputs)
        with pytest.raises(whole_checkpoints.CheckpointError, match=message):
            whole_checkpoints.Checkpointer(tmp_path, net=layer)
        return
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, net=layer)
    layer(inputs)
    with pytest.raises(whole_checkpoints.CheckpointError, match=message):
        checkpointer.save(1)


def damage(path):
    with open(path, "r+b") as file:
        file.seek(0)
        file.write(b"\xff" * 8)


def test_a_new_directory_is_created_and_holds_no_checkpoint(tmp_path):
    directory = tmp_path / "a" / "b"
    checkpointer = whole_checkpoints.Checkpointer(directory, variable=tf.Variable(0.0))
    assert directory.is_dir()
    assert not checkpointer.checkpoint_exists


def test_the_latest_checkpoint_is_restored_at_construction(tmp_path):
    save_some(tmp_path, [10.0, 20.0])
    assert restored_value(tmp_path) == 20.0


def test_initialize_or_restore_brings_saved_values_back(tmp_path):
    variable = tf.Variable(1.0)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, variable=variable)
    checkpointer.save(tf.Variable(7, dtype=tf.int64))
    variable.assign(2.0)
    assert checkpointer.initialize_or_restore().endswith("ckpt-7")
    assert float(variable) == 1.0


def test_only_the_newest_checkpoints_stay(tmp_path):
    variable = tf.Variable(0.0)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, 2, variable=variable)
    for number in range(5):
        checkpointer.save(number)
    left = sorted(name for name in os.listdir(tmp_path) if name.endswith(".index"))
    assert left == ["ckpt-3.index", "ckpt-4.index"]


def test_numbers_are_ordered_as_numbers_not_as_text(tmp_path):
    variable = tf.Variable(9.0)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, variable=variable)
    checkpointer.save(9)
    variable.assign(10.0)
    checkpointer.save(10)
    (tmp_path / "checkpoint").unlink()
    assert restored_value(tmp_path) == 10.0


@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, suffix):
    save_some(tmp_path, [10.0, 20.0])
    damage(tmp_path / f"ckpt-2{suffix}")
    with pytest.warns(RuntimeWarning, match=r"CHECKPOINT DAMAGED[\s\S]*ckpt-1"):
        assert restored_value(tmp_path) == 10.0


def leave(directory, *, index):
    """Leaves ckpt-2 as a save does that ends while it puts its parts together."""
    (directory / "ckpt-2_temp").mkdir(exist_ok=True)
    (directory / "ckpt-2_temp" / "part-00000-of-00001.index").write_bytes(b"x")
    if index is None:
        (directory / "ckpt-2.index").unlink(missing_ok=True)
    elif index is not ...:
        (directory / "ckpt-2.index").write_bytes(index)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        pytest.param(None, 10.0, id="absent"),
        pytest.param(b"", 10.0, id="empty"),
        pytest.param(b"\0" * 100, 10.0, id="in part"),
        pytest.param(..., 20.0, id="whole"),
    ],
)
@pytest.mark.parametrize("is_removed", [False, True])
def test_an_unfinished_checkpoint_is_passed_over_in_silence(
    tmp_path, index, value, is_removed
):
    save_some(tmp_path, [10.0, 20.0])
    leave(tmp_path, index=index)
    if is_removed:
        checkpoint_files.remove_unfinished(tmp_path)
        assert not (tmp_path / "ckpt-2_temp").exists()
        is_kept = (tmp_path / "ckpt-2.data-00000-of-00001").exists()
        assert is_kept == (value == 20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert restored_value(tmp_path) == value


def test_a_full_disk_leaves_no_part_of_a_checkpoint(tmp_path, monkeypatch):
    variable = tf.Variable(1.0)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, variable=variable)
    before = set(tmp_path.iterdir())

    def fail(checkpoint_number):
        (tmp_path / "ckpt-2.data-00000-of-00001").write_bytes(b"values")
        leave(tmp_path, index=b"")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    with monkeypatch.context() as patches:
        patches.setattr(checkpointer.manager, "save", fail)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            checkpointer.save(2)
    assert set(tmp_path.iterdir()) == before
    checkpointer.save(2)
    assert restored_value(tmp_path) == 1.0


def test_a_missing_data_file_is_passed_over_with_a_warning(tmp_path):
    save_some(tmp_path, [10.0, 20.0])
    (tmp_path / "ckpt-2.data-00000-of-00001").unlink()
    with pytest.warns(RuntimeWarning, match="CHECKPOINT DAMAGED"):
        assert restored_value(tmp_path) == 10.0


def cut(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_checkpoint_cut_short_is_passed_over_with_a_warning(tmp_path, suffix, share):
    save_some(tmp_path, [10.0, 20.0])
    path = tmp_path / f"ckpt-2{suffix}"
    size = int(share * path.stat().st_size)
    cut(path, size)
    with pytest.warns(
        RuntimeWarning,
        match=f"CHECKPOINT DAMAGED[\\s\\S]*{path.name} \\({size} bytes\\)",
    ):
        assert restored_value(tmp_path) == 10.0


@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index"])
def test_nothing_but_checkpoints_cut_short_is_an_error_that_names_files(
    tmp_path, suffix
):
    save_some(tmp_path, [10.0, 20.0])
    for number in (1, 2):
        cut(tmp_path / f"ckpt-{number}{suffix}", 0)
    with pytest.raises(whole_checkpoints.CheckpointError) as error:
        restored_value(tmp_path)
    for number in (1, 2):
        assert f"ckpt-{number}{suffix} (0 bytes)" in str(error.value)


@pytest.mark.parametrize(
    ("suffix", "found"),
    [(".data-00000-of-00001", "ckpt-1.data-*"), (".index", "ckpt-1.index")],
)
def test_a_missing_file_is_named(tmp_path, suffix, found):
    save_some(tmp_path, [10.0])
    (tmp_path / f"ckpt-1{suffix}").unlink()
    with pytest.raises(
        whole_checkpoints.CheckpointError, match=re.escape(f"{found} (missing)")
    ):
        restored_value(tmp_path)


def save_parts(directory, units, capacity):
    network = keras.Sequential([keras.layers.Dense(units, name="hidden")])
    network.build((None, 4))
    whole_checkpoints.Checkpointer(
        directory,
        network=network,
        table=tf.Variable(tf.zeros([capacity]), name="rows"),
    ).save(units)


@pytest.mark.parametrize(
    ("units", "capacity", "difference"),
    [
        (9, 5, r"network, variable .*/kernel: saved float32 \(4, 8\), here .*\(4, 9\)"),
        (8, 6, r"table, variable rows: saved float32 \(5,\), here float32 \(6,\)"),
    ],
)
def test_other_shapes_are_an_error_that_names_the_variables(
    tmp_path, units, capacity, difference
):
    save_parts(tmp_path, 8, 5)
    with pytest.raises(whole_checkpoints.CheckpointError, match=difference) as error:
        save_parts(tmp_path, units, capacity)
    assert "another configuration" in str(error.value)
    assert "Restore the files" not in str(error.value)


def test_other_shapes_do_not_fall_back_to_an_older_checkpoint(tmp_path):
    save_some(tmp_path, [10.0])
    whole_checkpoints.Checkpointer(
        tmp_path / "other", variable=tf.Variable([1.0])
    ).save(2)
    for path in (tmp_path / "other").glob("ckpt-2*"):
        path.rename(tmp_path / path.name)
    with pytest.raises(
        whole_checkpoints.CheckpointError, match=r"ckpt-2: its files are"
    ):
        restored_value(tmp_path)


def test_another_dtype_is_an_error(tmp_path):
    save_some(tmp_path, [10.0])
    with pytest.raises(
        whole_checkpoints.CheckpointError, match=r"saved float32 \(\), here int32 \(\)"
    ):
        whole_checkpoints.Checkpointer(tmp_path, variable=tf.Variable(0))


def test_a_variable_that_was_not_saved_keeps_its_value_with_a_warning(tmp_path):
    whole_checkpoints.Checkpointer(tmp_path, pair=[tf.Variable(1.0)]).save(1)
    pair = [tf.Variable(0.0), tf.Variable(5.0, name="second")]
    with pytest.warns(RuntimeWarning, match=r"does not hold[\s\S]*pair, variable seco"):
        whole_checkpoints.Checkpointer(tmp_path, pair=pair)
    assert [float(v) for v in pair] == [1.0, 5.0]


def test_an_object_that_was_not_saved_at_all_is_no_reason_to_warn(tmp_path):
    save_some(tmp_path, [10.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole_checkpoints.Checkpointer(
            tmp_path, variable=tf.Variable(0.0), buffer=tf.Variable(1.0)
        )


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"all of it: 1"])
def test_a_damaged_state_file_is_written_again(tmp_path, content):
    save_some(tmp_path, [10.0, 20.0])
    (tmp_path / "checkpoint").write_bytes(content)
    variable = tf.Variable(0.0)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, 2, variable=variable)
    assert float(variable) == 20.0
    checkpointer.save(3)
    left = sorted(name for name in os.listdir(tmp_path) if name.endswith(".index"))
    assert left == ["ckpt-2.index", "ckpt-3.index"]


def test_a_state_file_without_checkpoints_does_no_harm(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b"")
    assert restored_value(tmp_path) == -1.0


def test_a_lost_state_file_does_not_hide_the_checkpoints(tmp_path):
    save_some(tmp_path, [10.0])
    (tmp_path / "checkpoint").unlink()
    assert restored_value(tmp_path) == 10.0


def test_nothing_but_damaged_checkpoints_is_an_error(tmp_path):
    save_some(tmp_path, [10.0, 20.0])
    for number in (1, 2):
        damage(tmp_path / f"ckpt-{number}.data-00000-of-00001")
    with pytest.raises(
        whole_checkpoints.CheckpointError, match="none of its 2 checkpoin"
    ):
        restored_value(tmp_path)


class Agent(tf.Module):
    """Has the attribute by which agents are known, and a weight and a statistic."""

    train_step_counter = 0

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable([1.0, 2.0], name="weight")
        self.statistic = tf.Variable(0.0, trainable=False, name="statistic")
        self.lowest = tf.Variable(np.inf, trainable=False, name="lowest")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["weight", "statistic"])
def test_numbers_of_an_agent_that_are_not_finite_are_not_saved(tmp_path, name, number):
    agent = Agent()
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, agent=agent)
    checkpointer.save(1)
    before = sorted(os.listdir(tmp_path))
    variable = getattr(agent, name)
    variable.assign(tf.fill(variable.shape, number))
    with pytest.raises(whole_checkpoints.CheckpointError) as error:
        checkpointer.save(2)
    assert f"agent, variable {name}" in str(error.value)
    assert f"the last checkpoint, {tmp_path / 'ckpt-1'}" in str(error.value)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("kind", [tf.float16, tf.bfloat16, tf.float64])
def test_every_kind_of_floating_point_number_is_checked(tmp_path, kind):
    weight = tf.Variable(tf.zeros([3], kind))
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, weight=weight)
    checkpointer.save(1)
    weight.assign([0, np.nan, 0])
    with pytest.raises(whole_checkpoints.CheckpointError, match="weight, variable"):
        checkpointer.save(2)


def test_slots_of_an_optimizer_and_statistics_of_a_layer_are_checked(tmp_path):
    layer = keras.layers.BatchNormalization()
    layer.build((None, 2))
    optimizer = keras.optimizers.Adam()
    optimizer.build(layer.trainable_variables)
    checkpointer = whole_checkpoints.Checkpointer(
        tmp_path, layer=layer, optimizer=optimizer
    )
    for variable in (layer.moving_variance, optimizer.variables[-1]):
        variable.assign(np.full(variable.shape, np.inf))
        with pytest.raises(whole_checkpoints.CheckpointError, match=variable.path):
            checkpointer.save(1)
        variable.assign(np.zeros(variable.shape))
    checkpointer.save(1)


def test_data_may_be_infinite(tmp_path):
    data = tf.Variable([np.inf, np.nan], trainable=False)
    best = tf.Variable(-np.inf)
    whole_checkpoints.Checkpointer(tmp_path, agent=Agent(), data=data, best=best).save(
        1
    )
    data.assign([0.0, 0.0])
    best.assign(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole_checkpoints.Checkpointer(
            tmp_path, agent=Agent(), data=data, best=tf.Variable(-np.inf)
        )
    np.testing.assert_array_equal(data, [np.inf, np.nan])


def save_unchecked(directory, *values):
    """Writes checkpoints as releases did that saved without checking."""
    variable = tf.Variable(0.0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(variable=variable), str(directory), 20
    )
    for number, value in enumerate(values, start=1):
        variable.assign(value)
        manager.save(number)


def test_a_checkpoint_that_is_not_finite_is_passed_over_with_a_warning(tmp_path):
    save_unchecked(tmp_path, 10.0, np.inf, np.nan)
    with pytest.warns(
        RuntimeWarning,
        match=r"ckpt-3: its weights are lost, 1 of 1 [\s\S]*one, .*ckpt-1",
    ):
        assert restored_value(tmp_path) == 10.0


def test_nothing_but_checkpoints_that_are_not_finite_is_an_error(tmp_path):
    save_unchecked(tmp_path, np.nan)
    with pytest.raises(
        whole_checkpoints.CheckpointError, match=r"none of its 1[\s\S]*weights are lost"
    ):
        restored_value(tmp_path)


def test_a_program_whose_weights_are_lost_may_restore_a_good_checkpoint(tmp_path):
    weight = tf.Variable(1.0)
    checkpointer = whole_checkpoints.Checkpointer(tmp_path, weight=weight)
    checkpointer.save(1)
    weight.assign(np.nan)
    assert checkpointer.initialize_or_restore().endswith("ckpt-1")
    assert float(weight) == 1.0
    checkpointer.save(2)
