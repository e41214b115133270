"""A layer's checkpoints, and snapshots that another program could load."""

import os
import tempfile
import warnings

import keras
import numpy as np
import tensorflow as tf
from acme import utils

os.environ["HOME"] = tempfile.mkdtemp()
os.environ["TFRL_ID"] = "experiment"
layer = keras.layers.Dense(5)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    saver = utils.tf2_utils.Checkpointer(
        objects_to_save={"layer": layer}, objects_to_snapshot={"layer": layer}
    )
    for _ in range(20):
        saver.save()
assert len(caught) == 1, [str(warning.message) for warning in caught]
assert "create_variables" in str(caught[0].message)

# The same with a layer that has variables: a later program continues with its weights.
utils.tf2_utils.create_variables(layer, [tf.TensorSpec([3])])
saver.save(force=True)
again = keras.layers.Dense(5)
utils.tf2_utils.create_variables(again, [tf.TensorSpec([3])])
utils.tf2_utils.Checkpointer(objects_to_save={"layer": again})
inputs = np.ones([2, 3], np.float32)
assert np.array_equal(again(inputs), layer(inputs))

path = os.path.expanduser("~/tfrl/experiment/snapshots/layer")
assert np.allclose(tf.saved_model.load(path)(inputs), layer(inputs), rtol=1e-6)
