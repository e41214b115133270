import types

import pytest
import tensorflow as tf

from tests import summaries_read
from tfrl.train.utils import train_utils


def test_the_train_step_is_an_int64_scalar_that_is_not_trained():
    step = train_utils.create_train_step()
    assert (step.dtype, step.shape, int(step)) == (tf.int64, [], 0)
    assert not step.trainable
    assert step.aggregation == tf.VariableAggregation.ONLY_FIRST_REPLICA


def counting(answers):
    """Returns a predicate that gives these answers, and the list of those left."""
    left = list(answers)
    return lambda: left.pop(0), left


def test_waiting_ends_when_the_predicate_is_false(monkeypatch):
    slept = []
    monkeypatch.setattr(train_utils.time, "sleep", slept.append)
    predicate, left = counting([True, True, False, True])
    train_utils.wait_for_predicate(predicate, sleep_time_secs=3, num_retries=9)
    assert left == [True]
    assert slept == [3, 3]


def test_the_last_look_counts():
    predicate, left = counting([True, False])
    train_utils.wait_for_predicate(predicate, sleep_time_secs=0, num_retries=2)
    assert left == []


def test_waiting_without_limit_ends_too():
    predicate, left = counting([True] * 5 + [False])
    train_utils.wait_for_predicate(predicate, sleep_time_secs=0, num_retries=None)
    assert left == []


def test_waiting_in_vain_is_a_timeout():
    predicate, left = counting([True, True, True])
    with pytest.raises(TimeoutError, match="looked 2 times, 0 seconds apart"):
        train_utils.wait_for_predicate(predicate, sleep_time_secs=0, num_retries=2)
    assert left == [True]


def test_an_empty_file_is_waited_for(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(TimeoutError, match=f"waited in vain for {path} to be written"):
        train_utils.wait_for_file(str(path), sleep_time_secs=0, num_retries=1)
    path.write_text("text")
    assert train_utils.wait_for_file(str(path), num_retries=1) == str(path)


def test_a_missing_policy_is_a_timeout(tmp_path):
    with pytest.raises(TimeoutError, match=r"policy_specs\.pbtxt"):
        train_utils.wait_for_policy(tmp_path, sleep_time_secs=0, num_retries=1)


def test_staleness_is_the_age_of_the_collecting_policies(tmp_path):
    train_step = tf.Variable(57, dtype=tf.int64)
    after_train_step = train_utils.create_staleness_metrics_after_train_step_fn(
        train_step, train_steps_per_policy_update=10
    )
    # Collected by the policies of these steps; the newest policy is from step 50.
    info = types.SimpleNamespace(priority=tf.constant([50.0, 20.0, 40.0, 50.0]))
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        after_train_step((None, info), None)
    assert summaries_read.scalars(tmp_path) == {
        "staleness/max_train_step_delta_in_batch": [(57, 30.0)],
        "staleness/max_policy_update_delta_in_batch": [(57, 3.0)],
        "staleness/num_stale_obserations_in_batch": [(57, 2.0)],
    }
