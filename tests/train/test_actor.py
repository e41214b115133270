"""An actor's steps, observers, metrics and summaries, in episodes of three steps.

The rewards of an episode are 1, 2 and 3, so its return is 6.
"""

import logging

import numpy as np
import pytest
import tensorflow as tf

from tests import summaries_read
from tfrl import testing
from tfrl.environments import tf_py_environment
from tfrl.metrics import tf_metrics
from tfrl.policies import random_py_policy, random_tf_policy
from tfrl.train import actor


def make_py(**kwargs):
    environment = testing.CountingEnvironment(3)
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    return make_actor(environment, policy, **kwargs)


def make_tf(**kwargs):
    environment = tf_py_environment.TFPyEnvironment(testing.CountingEnvironment(3))
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    return make_actor(environment, policy, **kwargs)


def make_actor(environment, policy, train_step=None, **kwargs):
    train_step = tf.Variable(0, dtype=tf.int64) if train_step is None else train_step
    return actor.Actor(environment, policy, train_step, **kwargs)


def results(made):
    return {metric.name: float(np.asarray(metric.result())) for metric in made.metrics}


BOTH = pytest.mark.parametrize("make", [make_py, make_tf])


@BOTH
def test_a_run_goes_on_where_the_last_one_ended(make):
    made = make(steps_per_run=2, metrics=actor.collect_metrics(10))
    made.run()
    assert results(made) == {
        "NumberOfEpisodes": 0,
        "EnvironmentSteps": 2,
        "AverageReturn": 0,
        "AverageEpisodeLength": 0,
    }
    for _ in range(2):
        made.run()
    assert results(made) == {
        "NumberOfEpisodes": 2,
        "EnvironmentSteps": 6,
        "AverageReturn": 6,
        "AverageEpisodeLength": 3,
    }


@BOTH
def test_a_run_of_episodes_ends_with_their_boundaries(make):
    frames = []
    made = make(
        episodes_per_run=2,
        observers=[frames.append],
        metrics=actor.eval_metrics(10),
    )
    made.run()
    assert results(made) == {"AverageReturn": 6, "AverageEpisodeLength": 3}
    steps = [int(np.squeeze(frame.step_type)) for frame in frames]
    assert steps == [0, 1, 1, 2, 0, 1, 1, 2]


@BOTH
def test_reset_begins_an_episode(make):
    frames = []
    made = make(steps_per_run=2, observers=[frames.append])
    made.run()
    made.reset()
    made.run()
    counts = [int(np.squeeze(frame.observation)) for frame in frames]
    assert counts == [0, 1, 0, 1]


def test_observers_are_called_once_each_and_in_order():
    called = []

    class Named:
        name = "Named"

        def __init__(self, label):
            self._label = label

        def __call__(self, frame):
            called.append(self._label)

        def result(self):
            return 0.0

    first, second, metric = map(Named, ("first", "second", "metric"))
    made = make_py(
        steps_per_run=1,
        observers=[second, first, second, metric],
        metrics=[metric],
        transition_observers=[lambda _: called.append("transition")],
        info_observers=[lambda _: called.append("info")],
    )
    made.run()
    assert called == ["transition", "second", "first", "metric", "info"]


@BOTH
def test_summaries_have_the_tags_of_tf_agents(make, tmp_path):
    train_step = tf.Variable(5, dtype=tf.int64)
    metrics = actor.collect_metrics(10)
    episodes, steps, average, _ = metrics
    made = make(
        train_step=train_step,
        steps_per_run=3,
        metrics=[steps, average],
        reference_metrics=[steps, episodes],
        summary_dir=tmp_path / "named",
        summary_interval=10,
        name="collect",
    )
    made.run()  # The first run writes.
    train_step.assign(14)
    made.run()  # Not due.
    train_step.assign(15)
    made.run()
    made.summary_writer.flush()
    assert summaries_read.scalars(tmp_path / "named") == {
        "Metrics/collect/EnvironmentSteps": [(5, 3), (15, 9)],
        "Metrics/collect/AverageReturn": [(5, 6), (15, 6)],
        "collect/Metrics/EnvironmentSteps/EnvironmentSteps": [(3, 3), (9, 9)],
        "collect/Metrics/AverageReturn/EnvironmentSteps": [(3, 6), (9, 6)],
        # A reference that is not among the metrics is not updated.
        "collect/Metrics/EnvironmentSteps/NumberOfEpisodes": [(0, 3), (0, 9)],
        "collect/Metrics/AverageReturn/NumberOfEpisodes": [(0, 6), (0, 6)],
    }


def test_images_are_written_and_an_actor_may_have_no_name(tmp_path):
    class Picture:
        name = "Picture"

        def __call__(self, frame):
            self._count = frame.observation

        def result(self):
            return np.full((1, 2, 2, 3), self._count, np.uint8)

    made = make_py(
        steps_per_run=1,
        metrics=actor.eval_metrics(1),
        image_metrics=[Picture()],
        summary_dir=tmp_path,
    )
    made.run()
    made.summary_writer.flush()
    assert summaries_read.tags(tmp_path) == {
        "Metrics/AverageReturn",
        "Metrics/AverageEpisodeLength",
        "Metrics/Picture",
    }
    assert [metric.name for metric in made.image_metrics] == ["Picture"]


def test_run_and_log_logs_the_metrics(caplog):
    made = make_py(steps_per_run=3, metrics=actor.eval_metrics(1), name="eval")
    with caplog.at_level(logging.INFO):
        made.run_and_log()
    assert "eval \n\t\t AverageReturn = 6.0" in caplog.text
    assert made.train_step == 0
    assert made.policy is not None


def test_metrics_in_tensorflow_work_with_an_environment_in_tensorflow():
    metric = tf_metrics.EnvironmentSteps()
    made = make_tf(steps_per_run=4, metrics=[metric])
    made.run()
    assert results(made) == {"EnvironmentSteps": 4}


def test_a_policy_of_the_other_kind_is_refused():
    environment = testing.CountingEnvironment(3)
    wrapped = tf_py_environment.TFPyEnvironment(environment)
    tf_policy = random_tf_policy.RandomTFPolicy(
        wrapped.time_step_spec(), wrapped.action_spec()
    )
    py_policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    with pytest.raises(TypeError, match=r"wrap it in .*PyTFEagerPolicy"):
        make_actor(environment, tf_policy, steps_per_run=1)
    with pytest.raises(TypeError, match=r"policy: got a RandomPyPolicy .* TFPolicy"):
        make_actor(wrapped, py_policy, steps_per_run=1)
    with pytest.raises(TypeError, match="env: got a str, expected a PyEnvironment"):
        make_actor("CartPole-v1", py_policy, steps_per_run=1)


def test_what_an_environment_in_tensorflow_cannot_do_is_refused():
    with pytest.raises(ValueError, match=r"info_observers: got 1 .* no info"):
        make_tf(steps_per_run=1, info_observers=[print])
    with pytest.raises(ValueError, match="end_episode_on_boundary: got False"):
        make_tf(steps_per_run=1, end_episode_on_boundary=False)
