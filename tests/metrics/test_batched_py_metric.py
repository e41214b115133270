"""A metric for each member of a batch."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.metrics import py_metric, py_metrics
from tfrl.metrics.batched_py_metric import BatchedPyMetric
from tfrl.trajectories import trajectory as traj


def frame(*rewards):
    """One whole episode of one step for each member."""
    rewards = np.array(rewards, np.float32)
    return traj.single_step((), (), (), rewards, np.zeros_like(rewards))


def make(**kwargs):
    return BatchedPyMetric(py_metrics.AverageReturnMetric, **kwargs)


def test_members_results_are_averaged_whatever_their_number_of_episodes():
    metric = make(metric_args={"buffer_size": 1})
    metric(frame(1.0, 10.0))
    metric(frame(3.0, 20.0))
    assert metric.result() == (3 + 20) / 2


def test_the_class_says_how_results_are_aggregated():
    class MaxReturn(py_metrics.AverageReturnMetric):
        @staticmethod
        def aggregate(metrics):
            return max(metric.result() for metric in metrics)

    metric = BatchedPyMetric(MaxReturn)
    metric(frame(1.0, 10.0))
    assert metric.result() == 10


def test_name_and_prefix_are_the_members_unless_given():
    assert (make().name, make().prefix) == ("AverageReturn", "Metrics")
    named = make(name="Mine", prefix="Eval")
    assert (named.name, named.prefix) == ("Mine", "Eval")


def test_before_the_first_call_the_result_is_zero():
    result = make(dtype=np.float64).result()
    assert (result, result.dtype) == (0, np.float64)


def test_reset_forgets_everything():
    metric = make(batch_size=2)
    metric(frame(1.0, 10.0))
    metric.reset()
    assert metric.result() == 0


def test_another_batch_size_is_refused():
    with pytest.raises(ValueError, match=r"AverageReturn: .*batch of 1.* saw, 2; use"):
        make(batch_size=2)(frame(1.0))


def test_batched_metrics_are_not_aggregated():
    with pytest.raises(NotImplementedError, match="whole batch"):
        BatchedPyMetric.aggregate([make()])


def test_checkpoint_restores_the_members(tmp_path):
    metric = make()
    metric(frame(1.0, 10.0))
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))
    restored = make()
    tf.train.Checkpoint(metric=restored).restore(path)
    assert restored.result() == 5.5
    restored(frame(3.0, 20.0))
    assert restored.result() == (2 + 15) / 2


def test_metrics_of_one_environment_alone_can_be_batched():
    class LastReward(py_metric.PyStepMetric):
        def __init__(self):
            super().__init__("LastReward")
            self.reset()

        def call(self, trajectory):
            assert trajectory.reward.shape == ()
            self._reward = trajectory.reward

        def reset(self):
            self._reward = np.float32(0)

        def result(self):
            return self._reward

    metric = BatchedPyMetric(LastReward)
    metric(frame(1.0, 10.0))
    assert metric.result() == 5.5
