"""What is written for TensorBoard, read back from the event file."""

import sys

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
        "x/mean_abs": 3,
        "x/std": pytest.approx(np.std([1, 2, 3, 6]), rel=1e-6),
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
        "summarize_vars/weight_0_value_norm": 5,
        "summarize_vars/other_0_value_norm": 1,
        "summarize_grads/weight_0_gradient_norm": 10,
    }
    assert "summarize_vars/weight_0_value" in result
    assert "summarize_grads/weight_0_gradient" in result


def test_histograms_have_their_own_names(written):
    data = {"x": tf.constant([1.0, 2.0]), "y": None}
    assert list(written(lambda: summaries.summarize_histogram_dict(data, 1))) == ["x"]


def test_sparse_gradients_and_integer_variables(written):
    seed, table = tf.Variable([1], name="seed"), tf.Variable([[1.0]], name="table")
    sparse = tf.IndexedSlices(tf.constant([[3.0]]), tf.constant([0]))

    def write():
        summaries.add_variables_summaries([(None, seed)], 0)
        summaries.add_gradients_summaries([(sparse, table)], 0)

    result = written(write)
    assert float(result["summarize_grads/table_0_gradient_norm"][1]) == 3
    assert not any("seed" in tag for tag in result)


def test_steps_that_are_not_recorded_compute_nothing_and_trace_once(written):
    computed, recorded = tf.Variable(0), tf.Variable(True)
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def write():
        def histogram():
            computed.assign_add(1)
            tf.summary.histogram("x", [1.0], step=step)

        summaries.when_recording(histogram)
        summaries.summarize_tensor_dict({"y": tf.constant([1.0])}, step)
        step.assign_add(1)

    def steps():
        with tf.summary.record_if(lambda: recorded):
            for on in (True, False, True, False):
                recorded.assign(on)
                write()

    result = written(steps)
    assert set(result) >= {"x", "y/mean", "y/histogram"}
    assert int(computed) == 2
    assert write.experimental_get_tracing_count() == 1


def test_without_a_writer_the_graph_is_empty():
    def write(x):
        summaries.summarize_tensor_dict({"x": x}, 0)
        summaries.add_gradients_summaries([(x, tf.constant(1.0))], 0)

    graph = tf.function(write).get_concrete_function(tf.TensorSpec([2])).graph
    assert not {op.type for op in graph.get_operations()} - {"Placeholder", "Const"}


def test_without_a_writer_nothing_happens():
    pairs = [(tf.constant([1.0]), tf.Variable([1.0]))]
    summaries.summarize_scalar_dict({"a": 1.0}, 0)
    summaries.summarize_tensor_dict({"a": tf.ones([2])}, 0)
    summaries.add_variables_summaries(pairs, 0)
    summaries.add_gradients_summaries(pairs, None)


def test_step_becomes_int64():
    assert summaries.as_step(None) is None
    assert summaries.as_step(tf.Variable(3)).dtype == tf.int64


def test_a_step_is_not_kept_by_tensorflow():
    step = int("123456789")
    before = sys.getrefcount(step)
    assert summaries.as_step(step).numpy() == step
    assert sys.getrefcount(step) == before
