"""All metrics against plain NumPy, over random episodes of whole batches."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.metrics import py_metrics, tf_metrics
from tfrl.metrics.batched_py_metric import BatchedPyMetric
from tfrl.trajectories import trajectory as traj

FIRST, MID, LAST = 0, 1, 2
STEPS = 60


def random_frames(batch_size, seed=0):
    """Frames `[T, B]` whose members end their episodes at different times.

    Some episodes are truncated (the discount stays 1), one is cut off by a reset in
    the middle, and every LAST step is followed by its boundary.
    """
    rng = np.random.default_rng(seed)
    step_type = np.full(batch_size, FIRST)
    frames = []
    for t in range(STEPS):
        boundary = step_type == LAST
        ends = rng.random(batch_size) < 0.3
        next_type = np.where(boundary, FIRST, np.where(ends, LAST, MID))
        if t == STEPS // 2:
            next_type[0] = FIRST
        reward = np.where(boundary, 0, rng.normal(size=batch_size))
        frames.append(
            traj.Trajectory(
                step_type=step_type.astype(np.int32),
                observation=(),
                action=rng.integers(0, 5, batch_size).astype(np.int32),
                policy_info=(),
                next_step_type=next_type.astype(np.int32),
                reward=reward.astype(np.float32),
                discount=np.where(rng.random(batch_size) < 0.5, 0, 1).astype("f"),
            )
        )
        step_type = next_type
    return frames


def finished_episodes(frames):
    """`(return, length)` of the finished episodes, in the order in which they end."""
    batch_size = len(frames[0].step_type)
    sums, lengths, finished = np.zeros(batch_size), np.zeros(batch_size), []
    for frame in frames:
        for b in range(batch_size):
            if frame.step_type[b] == FIRST:
                sums[b] = lengths[b] = 0
            if frame.step_type[b] == LAST:
                continue
            sums[b] += frame.reward[b]
            lengths[b] += 1
            if frame.next_step_type[b] == LAST:
                finished.append((sums[b], lengths[b]))
    return np.array(finished)


@pytest.fixture(params=[1, 7], scope="module")
def case(request):
    frames = random_frames(request.param)
    returns, lengths = finished_episodes(frames).T
    steps = sum(int((f.step_type != LAST).sum()) for f in frames)
    assert len(returns) > 10
    return frames, returns, lengths, steps


def test_tf_metrics_in_a_graph_agree_with_numpy(case):
    frames, returns, lengths, steps = case
    batch_size = len(frames[0].step_type)
    metrics = {
        tf_metrics.AverageReturnMetric(batch_size=batch_size): returns[-10:].mean(),
        tf_metrics.MaxReturnMetric(batch_size=batch_size): returns[-10:].max(),
        tf_metrics.MinReturnMetric(batch_size=batch_size): returns[-10:].min(),
        tf_metrics.AverageEpisodeLengthMetric(batch_size=batch_size): lengths[
            -10:
        ].mean(),
        tf_metrics.AverageReturnMultiMetric(
            tf.TensorSpec([]), batch_size=batch_size
        ): returns[-10:].mean(),
        tf_metrics.EnvironmentSteps(): steps,
        tf_metrics.NumberOfEpisodes(): len(returns),
    }
    histogram = tf_metrics.ChosenActionHistogram(buffer_size=40)

    @tf.function
    def observe(trajectory):
        for metric in [*metrics, histogram]:
            metric(trajectory)

    for frame in frames:
        observe(tf.nest.map_structure(tf.constant, frame))

    for metric, expected in metrics.items():
        np.testing.assert_allclose(metric.result(), expected, rtol=1e-5)
    chosen = np.concatenate([f.action[f.step_type != LAST] for f in frames])
    assert sorted(histogram.result().numpy()) == sorted(chosen[-40:])
    assert observe.experimental_get_tracing_count() == 1


def test_py_metrics_agree_with_numpy(case):
    frames, returns, lengths, steps = case
    metrics = {
        py_metrics.AverageReturnMetric(): returns[-10:].mean(),
        py_metrics.AverageReturnMetric(buffer_size=np.inf): returns.mean(),
        py_metrics.AverageEpisodeLengthMetric(): lengths[-10:].mean(),
        py_metrics.EnvironmentSteps(): steps,
        py_metrics.NumberOfEpisodes(): len(returns),
    }
    for frame in frames:
        for metric in metrics:
            metric(frame)
    for metric, expected in metrics.items():
        np.testing.assert_allclose(metric.result(), expected, rtol=1e-5)


def test_a_batched_metric_is_the_mean_over_its_members(case):
    frames, *_ = case
    metric = BatchedPyMetric(py_metrics.AverageReturnMetric, {"buffer_size": 3})
    for frame in frames:
        metric(frame)
    members = [
        [tf.nest.map_structure(lambda x, b=b: x[b : b + 1], frame) for frame in frames]
        for b in range(len(frames[0].step_type))
    ]
    expected = [finished_episodes(member)[-3:, 0].mean() for member in members]
    np.testing.assert_allclose(metric.result(), np.mean(expected), rtol=1e-5)
