"""Metrics in the log."""

import logging
from types import SimpleNamespace

import tensorflow as tf

from tfrl.eval import metric_utils
from tfrl.metrics import export_utils, py_metrics, tf_metrics


def test_export_metrics_logs_a_line_for_each_metric_and_the_loss(caplog):
    metrics = [tf_metrics.EnvironmentSteps(), py_metrics.NumberOfEpisodes()]
    with caplog.at_level(logging.INFO):
        export_utils.export_metrics(
            tf.constant(3), metrics, SimpleNamespace(loss=tf.constant(0.5))
        )
    assert caplog.messages == [
        "[step=3] EnvironmentSteps = 0",
        "[step=3] NumberOfEpisodes = 0",
        "[step=3] loss = 0.5",
    ]


def test_log_metrics_is_one_message_by_each_of_its_names(caplog):
    multi = tf_metrics.AverageReturnMultiMetric({"a": tf.TensorSpec([])})
    with caplog.at_level(logging.INFO):
        tf_metrics.log_metrics([tf_metrics.EnvironmentSteps(), multi], prefix="Train")
    (message,) = caplog.messages
    assert message.startswith("Train")
    assert "EnvironmentSteps = 0" in message
    assert "AverageReturnMultiMetric = {'a': np.float32(0.0)}" in message
    assert metric_utils.log_metrics is tf_metrics.log_metrics
