"""What is written for TensorBoard, read back from the event file."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import summaries


@pytest.fixture
def written(tmp_path):
    """Runs a callable under a writer; returns its `{tag: (step, value)}`."""

    def run(write):
        with tf.summary.create_file_writer(str(tmp_path)).as_default() as writer:
            write()
            writer.flush()
        (path,) = tmp_path.iterdir()
        return {
            value.tag: (event.step, tf.make_ndarray(value.tensor))
            for event in tf.compat.v1.train.summary_iterator(str(path))
            for value in event.summary.value
        }

    return run


STEPS = [
    7,
    tf.constant(7, tf.int32),
    tf.Variable(7, dtype=tf.int32),
    tf.Variable(7, dtype=tf.int64),
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("graph", [False, True])
def test_scalars_are_written_at_the_step(written, step, graph):
    def write():
        summaries.summarize_scalar_dict({"a": tf.constant(1.5), "b": None}, step)

    result = written(tf.function(write) if graph else write)
    assert result == {"Losses/a": (7, 1.5)}


def test_scalars_have_the_scope_asked_for(written):
    result = written(
        lambda: summaries.summarize_scalar_dict({"a": 1.0}, 0, name_scope="Mine/")
    )
    assert list(result) == ["Mine/a"]


def test_nothing_to_write(written):
    assert written(lambda: summaries.summarize_scalar_dict(None, 0)) == {}


@pytest.mark.parametrize("shape", [[4], [2, 2]])
def test_tensor_is_described_by_its_statistics(written, shape):
    data = tf.reshape(tf.constant([1.0, 2, 3, 6]), shape)
    result = written(lambda: summaries.summarize_tensor_dict({"x": data}, 3))
    scalars = {k: float(v) for k, (_, v) in result.items() if v.ndim == 0}
    assert scalars == {
        "x/mean": 3,
        "x/stddev": pytest.approx(np.std([1, 2, 3, 6])),
        "x/max": 6,
        "x/min": 1,
    }
    assert "x/histogram" in result
    assert {step for step, _ in result.values()} == {3}


def test_variables_and_gradients_are_written_with_their_norms(written):
    weight = keras.Variable([3.0, 4.0], name="weight")
    other = tf.Variable([1.0], name="other")
    pairs = [(tf.constant([6.0, 8.0]), weight), (None, other)]

    def write():
        summaries.add_variables_summaries(pairs, STEPS[2])
        summaries.add_gradients_summaries(pairs, STEPS[2])

    result = written(write)
    norms = {k: float(v) for k, (_, v) in result.items() if k.endswith("_norm")}
    assert norms == {
        "summarize_vars/weight_value_norm": 5,
        "summarize_vars/other_0_value_norm": 1,
        "summarize_grads/weight_gradient_norm": 10,
    }
    assert "summarize_vars/weight_value" in result
    assert "summarize_grads/weight_gradient" in result


def test_without_a_writer_nothing_happens():
    pairs = [(tf.constant([1.0]), tf.Variable([1.0]))]
    summaries.summarize_scalar_dict({"a": 1.0}, 0)
    summaries.summarize_tensor_dict({"a": tf.ones([2])}, 0)
    summaries.add_variables_summaries(pairs, 0)
    summaries.add_gradients_summaries(pairs, None)


def test_step_becomes_int64():
    assert summaries.as_step(None) is None
    assert summaries.as_step(tf.Variable(3)).dtype == tf.int64
