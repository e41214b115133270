"""Pairs of gradients and variables."""

import keras
import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tfrl.utils import eager_utils


def pairs():
    variables = [tf.Variable([0.0, 0.0]), keras.Variable([0.0] * 4), tf.Variable(1.0)]
    indexed = tf.IndexedSlices(tf.constant([6.0, 8.0]), tf.constant([0, 2]), [4])
    return list(zip([tf.constant([3.0, 4.0]), indexed, None], variables, strict=True))


def check_clipped(clipped, variables):
    assert [variable is v for (_, variable), v in zip(clipped, variables, strict=True)]
    np.testing.assert_allclose(clipped[0][0], [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(
        tf.convert_to_tensor(clipped[1][0]), [0.6, 0, 0.8, 0], rtol=1e-6
    )
    assert clipped[2][0] is None


def test_each_gradient_is_clipped_on_its_own():
    given = pairs()
    variables = [variable for _, variable in given]
    check_clipped(eager_utils.clip_gradient_norms(iter(given), 1.0), variables)
    check_clipped(eager_utils.clip_gradient_norms_fn(1.0)(given), variables)


def test_small_gradients_are_left_as_they_are():
    (gradient, _), *_ = eager_utils.clip_gradient_norms(pairs(), 100.0)
    np.testing.assert_allclose(gradient, [3, 4], rtol=1e-6)


def test_summaries_of_gradients_and_variables_go_by_the_variables_names(tmp_path):
    variable = tf.Variable([3.0, 4.0], name="weights")
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        given = [(tf.constant([6.0, 8.0]), variable)]
        eager_utils.add_gradients_summaries(given, step=1)
        eager_utils.add_variables_summaries(given, step=1)
    events = EventAccumulator(str(tmp_path)).Reload()
    norms = {
        tag: tf.make_ndarray(events.Tensors(tag)[0].tensor_proto).item()
        for tag in events.Tags()["tensors"]
        if tag.endswith("_norm")
    }
    assert sorted(norms.values()) == [5, 10]
    assert all("weights" in tag for tag in norms)
