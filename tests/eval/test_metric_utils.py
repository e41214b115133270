"""Metrics over whole episodes."""

import collections
import logging

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tfrl.environments.tf_py_environment import TFPyEnvironment
from tfrl.eval import metric_utils
from tfrl.metrics import py_metrics, tf_metrics
from tfrl.policies.random_py_policy import RandomPyPolicy
from tfrl.policies.random_tf_policy import RandomTFPolicy
from tfrl.testing import CountingEnvironment
from tfrl.utils import common


def py_setting():
    env = CountingEnvironment()
    policy = RandomPyPolicy(env.time_step_spec(), env.action_spec())
    return (
        env,
        policy,
        [py_metrics.AverageReturnMetric(), py_metrics.NumberOfEpisodes()],
    )


def tf_setting():
    env = TFPyEnvironment(CountingEnvironment())
    policy = RandomTFPolicy(env.time_step_spec(), env.action_spec())
    return (
        env,
        policy,
        [tf_metrics.AverageReturnMetric(), tf_metrics.NumberOfEpisodes()],
    )


def scalars(path):
    events = EventAccumulator(str(path)).Reload()
    return {
        tag: [
            (e.step, tf.make_ndarray(e.tensor_proto).item())
            for e in events.Tensors(tag)
        ]
        for tag in events.Tags()["tensors"]
    }


def test_compute_runs_episodes_and_names_results():
    env, policy, metrics = py_setting()
    results = metric_utils.compute(metrics, env, policy, num_episodes=2)
    assert isinstance(results, collections.OrderedDict)
    assert results == {"AverageReturn": 6, "NumberOfEpisodes": 2}


def test_compute_resets_metrics_and_environment():
    env, policy, metrics = py_setting()
    metric_utils.compute(metrics, env, policy, num_episodes=2)
    env.step(np.int32(0))
    results = metric_utils.compute(metrics, env, policy, num_episodes=1)
    assert results == {"AverageReturn": 6, "NumberOfEpisodes": 1}


def test_compute_summaries_writes_logs_and_calls_back(tmp_path, caplog):
    env, policy, metrics = py_setting()
    calls = []
    with (
        tf.summary.create_file_writer(str(tmp_path)).as_default(),
        caplog.at_level(logging.INFO),
    ):
        results = metric_utils.compute_summaries(
            metrics,
            env,
            policy,
            num_episodes=1,
            global_step=5,
            log=True,
            callback=lambda *arguments: calls.append(arguments),
        )
    assert calls == [(results, 5)]
    assert scalars(tmp_path)["Metrics/AverageReturn"] == [(5, 6)]
    assert "AverageReturn = 6.0" in caplog.text
    assert "Step = 5" in caplog.text


@pytest.mark.parametrize("use_function", [True, False])
def test_eager_compute_runs_episodes_and_names_results(use_function):
    env, policy, metrics = tf_setting()
    for num_episodes in (2, 3):
        results = metric_utils.eager_compute(
            metrics, env, policy, num_episodes, use_function=use_function
        )
        assert results == {"AverageReturn": 6, "NumberOfEpisodes": num_episodes}


def test_eager_compute_does_not_trace_again():
    env, policy, metrics = tf_setting()
    for num_episodes in (1, 2, 3):
        metric_utils.eager_compute(metrics, env, policy, num_episodes)
    driver = metric_utils._driver(env, policy, tuple(metrics), True)
    assert driver._traced_loop.experimental_get_tracing_count() == 1


def test_eager_compute_writes_summaries(tmp_path):
    env, policy, metrics = tf_setting()
    metric_utils.eager_compute(
        metrics,
        env,
        policy,
        train_step=tf.constant(7, tf.int64),
        summary_writer=tf.summary.create_file_writer(str(tmp_path)),
        summary_prefix="Eval",
    )
    assert scalars(tmp_path) == {
        "Eval/AverageReturn": [(7, 6)],
        "Eval/NumberOfEpisodes": [(7, 1)],
    }


def test_eager_compute_writes_every_number_of_a_metric(tmp_path):
    env, policy, _ = tf_setting()
    metrics = [
        tf_metrics.AverageReturnMultiMetric(env.reward_spec()),
        tf_metrics.ChosenActionHistogram(),
    ]
    writer = tf.summary.create_file_writer(str(tmp_path))
    results = metric_utils.eager_compute(
        metrics, env, policy, train_step=7, summary_writer=writer
    )
    assert results["AverageReturnMultiMetric"] == 6
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()["tensors"]
    assert set(tags) == {"AverageReturnMultiMetric/reward", "ChosenActionHistogram"}


def test_metrics_group_gives_results_by_name_and_checkpoints(tmp_path):
    env, policy, metrics = tf_setting()
    group = metric_utils.MetricsGroup(metrics)
    metric_utils.eager_compute(metrics, env, policy, num_episodes=2)
    path = tf.train.Checkpoint(group=group).save(str(tmp_path / "ckpt"))
    for metric in metrics:
        metric.reset()
    tf.train.Checkpoint(group=group).restore(path)
    assert group.results() == {"AverageReturn": 6, "NumberOfEpisodes": 2}


def test_a_checkpointer_holds_a_group_of_python_metrics(tmp_path):
    env, policy, metrics = py_setting()
    metric_utils.compute(metrics, env, policy, num_episodes=2)
    group = metric_utils.MetricsGroup(metrics, "train_metrics")
    common.Checkpointer(str(tmp_path), metrics=group).save(global_step=0)

    restored = metric_utils.MetricsGroup(py_setting()[2])
    common.Checkpointer(str(tmp_path), metrics=restored)
    assert restored.results() == {"AverageReturn": 6, "NumberOfEpisodes": 2}


def test_log_metrics_shows_plain_numbers(caplog):
    with caplog.at_level(logging.INFO):
        metric_utils.log_metrics([tf_metrics.EnvironmentSteps()], prefix="Train")
    assert "Train" in caplog.text
    assert "EnvironmentSteps = 0" in caplog.text
