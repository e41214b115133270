import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import summaries


def _read_steps(logdir) -> dict[str, list[int]]:
    steps: dict[str, list[int]] = {}
    for path in logdir.glob("events*"):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                steps.setdefault(value.tag, []).append(event.step)
    return steps


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_counter_of_any_integer_type_is_a_step(tmp_path, dtype):
    counter = tf.Variable(6, dtype=dtype)
    pairs = [(tf.ones([2]), tf.Variable([3.0, 4.0], name="weights"))]

    @tf.function(autograph=False)
    def write():
        summaries.summarize_scalar_dict({"td": 2.0, "missing": None}, counter)
        summaries.generate_tensor_summaries("reward", tf.range(3.0), counter)
        summaries.add_variables_summaries(pairs, counter)
        summaries.add_gradients_summaries(pairs, counter)
        counter.assign_add(1)

    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        write()
        write()
    steps = _read_steps(tmp_path)
    assert set(steps) == {
        "Losses/td",
        *(f"reward/{x}" for x in ("histogram", "mean", "stddev", "max", "min")),
        "summarize_vars/weights_0_value",
        "summarize_vars/weights_0_value_norm",
        "summarize_grads/weights_0_gradient",
        "summarize_grads/weights_0_gradient_norm",
    }
    assert all(seen == [6, 7] for seen in steps.values())


def test_nothing_is_written_without_a_writer():
    summaries.summarize_scalar_dict({"td": 2.0}, tf.Variable(0))
    summaries.add_gradients_summaries([(None, tf.Variable(1.0))], tf.Variable(0))


@pytest.mark.parametrize("step", [3, np.int32(3), tf.constant(3)])
def test_as_step_gives_int64(step):
    assert summaries.as_step(step).dtype == tf.int64
    assert int(summaries.as_step(step)) == 3


def test_as_step_leaves_the_choice_to_tensorflow_without_a_step():
    assert summaries.as_step(None) is None
