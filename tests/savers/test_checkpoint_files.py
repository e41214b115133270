import os

import keras
import pytest
import tensorflow as tf

from tfrl.savers import checkpoint_files
from tfrl.utils.optimization import optimizers


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(amsgrad=True),
        lambda: tf.compat.v1.train.AdamOptimizer(),
    ],
)
def test_variables_are_named_as_tensorflow_names_them(tmp_path, optimizer):
    network = keras.Sequential(
        [keras.layers.LSTM(3), keras.layers.BatchNormalization(), keras.layers.Dense(2)]
    )
    network.build((None, 2, 4))
    root = tf.train.Checkpoint(
        network=network,
        optimizer=optimizers.OptimizerAdapter(optimizer(), network.trainable_variables),
        generator=tf.random.Generator.from_seed(1),
        nest=[tf.Variable(1), {"a.b/c": tf.Variable([2.0])}],
    )
    path = root.write(str(tmp_path / "all"))
    shapes = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    saved = {k: v for k, v in shapes.items() if k.endswith("VARIABLE_VALUE")}
    named = dict(checkpoint_files.named_variables(root))
    assert {key: list(v.shape) for key, v in named.items()} == saved


def test_a_missing_shard_is_an_error(tmp_path):
    root = tf.train.Checkpoint(variable=tf.Variable(1.0))
    path = root.write(str(tmp_path / "ckpt-1"))
    checkpoint_files.read_whole(path)
    (tmp_path / "ckpt-1.data-00000-of-00001").rename(
        tmp_path / "ckpt-1.data-00001-of-00002"
    )
    with pytest.raises(checkpoint_files.READING_ERRORS):
        checkpoint_files.read_whole(path)


@pytest.mark.parametrize("name", ["ckpt-1.index", "ckpt-1.data-00000-of-00001"])
def test_a_pipe_in_place_of_a_file_is_an_error(tmp_path, name):
    path = tf.train.Checkpoint(variable=tf.Variable(1.0)).write(
        str(tmp_path / "ckpt-1")
    )
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=f"^{name} is no file$"):
        checkpoint_files.read_whole(path)


def test_a_pipe_in_place_of_the_state_is_written_again(tmp_path):
    tf.train.Checkpoint(variable=tf.Variable(1.0)).write(str(tmp_path / "ckpt-1"))
    os.mkfifo(tmp_path / "checkpoint")
    checkpoint_files.repair_state(str(tmp_path))
    assert 'path: "ckpt-1"' in (tmp_path / "checkpoint").read_text()


@pytest.mark.parametrize(
    "listed", ["/home/me/ckpt-1", "../other/ckpt-1", "*", "ckpt-1.index", "ckpt-x"]
)
def test_a_state_that_names_another_folders_checkpoints_is_written_again(
    listed, tmp_path
):
    """TensorFlow's manager would delete them, as the oldest ones."""
    tf.train.Checkpoint(variable=tf.Variable(1.0)).write(str(tmp_path / "ckpt-2"))
    state = tmp_path / "checkpoint"
    names = [f'all_model_checkpoint_paths: "{name}"\n' for name in (listed, "ckpt-2")]
    state.write_text('model_checkpoint_path: "ckpt-2"\n' + "".join(names))
    checkpoint_files.repair_state(str(tmp_path))
    found = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert list(found) == [str(tmp_path / "ckpt-2")]


def test_a_state_that_is_a_link_is_written_again(tmp_path):
    tf.train.Checkpoint(variable=tf.Variable(1.0)).write(str(tmp_path / "ckpt-2"))
    (tmp_path / "own").write_text("own")
    (tmp_path / "checkpoint").symlink_to(tmp_path / "own")
    checkpoint_files.repair_state(str(tmp_path))
    assert not (tmp_path / "checkpoint").is_symlink()
    assert (tmp_path / "own").read_text() == "own"
