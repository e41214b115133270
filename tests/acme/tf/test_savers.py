"""Snapshots without a `Snapshotter`."""

import keras
import numpy as np
import tensorflow as tf

from tfrl.acme.tf import savers
from tfrl.acme.tf import utils as tf2_utils


def test_a_snapshot_is_called_and_saved_as_its_network(tmp_path):
    layer = keras.layers.Dense(2)
    tf2_utils.create_variables(layer, [tf.TensorSpec([3])])
    snapshot = savers.make_snapshot(layer)
    assert isinstance(snapshot, savers.Snapshot)
    inputs = np.ones([4, 3], np.float32)
    np.testing.assert_allclose(snapshot(inputs), layer(inputs), rtol=1e-6)
    tf.saved_model.save(snapshot, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded(inputs), layer(inputs), rtol=1e-6)
    assert len(loaded.trainable_variables) == 2


def test_what_a_checkpoint_may_hold():
    assert isinstance(tf.Variable(0.0), savers.Checkpointable)
    assert isinstance(keras.layers.Dense(1), savers.Checkpointable)
    assert issubclass(savers.SaveableAdapter, savers.PythonState)
