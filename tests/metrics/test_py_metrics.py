"""Metrics in NumPy, against trajectories worked by hand."""

import logging
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tfrl.metrics import py_metrics
from tfrl.metrics.tf_py_metric import TFPyMetric
from tfrl.trajectories import trajectory as traj
from tfrl.utils import numpy_storage

FIRST, MID, LAST = 0, 1, 2


def frame(*members):
    """A batched trajectory of `(step_type, next_step_type, reward)` members."""
    step_type, next_step_type, reward = zip(*members, strict=True)
    return traj.Trajectory(
        step_type=np.array(step_type, np.int32),
        observation=(),
        action=(),
        policy_info=(),
        next_step_type=np.array(next_step_type, np.int32),
        reward=np.array(reward, np.float32),
        discount=np.ones(len(members), np.float32),
    )


def single(member):
    return tf.nest.map_structure(lambda x: x[0], frame(member))


# Member 0: an episode of 2 steps (return 3), a reset, one step of the next.
# Member 1: an episode of 3 steps (return 60), then its reset.
EPISODES = [
    frame((FIRST, MID, 1.0), (FIRST, MID, 10.0)),
    frame((MID, LAST, 2.0), (MID, MID, 20.0)),
    frame((LAST, FIRST, 0.0), (MID, LAST, 30.0)),
    frame((FIRST, MID, 5.0), (LAST, FIRST, 0.0)),
]
EXPECTED = {
    py_metrics.EnvironmentSteps: 6,
    py_metrics.NumberOfEpisodes: 2,
    py_metrics.AverageReturnMetric: 31.5,
    py_metrics.AverageEpisodeLengthMetric: 2.5,
}


def feed(metric, frames=EPISODES):
    for trajectory in frames:
        assert metric(trajectory) is trajectory
    return metric.result()


@pytest.mark.parametrize("make", EXPECTED)
def test_batched_trajectories(make):
    assert feed(make()) == EXPECTED[make]


@pytest.mark.parametrize("make", EXPECTED)
def test_unbatched_trajectories_are_a_batch_of_one(make):
    frames = [
        single((FIRST, MID, 1.0)),
        single((MID, LAST, 2.0)),
        single((LAST, FIRST, 0.0)),
    ]
    expected = {
        py_metrics.EnvironmentSteps: 2,
        py_metrics.NumberOfEpisodes: 1,
        py_metrics.AverageReturnMetric: 3,
        py_metrics.AverageEpisodeLengthMetric: 2,
    }
    assert feed(make(), frames) == expected[make]


@pytest.mark.parametrize("make", EXPECTED)
def test_reset_forgets_everything(make):
    metric = make()
    feed(metric)
    metric.reset()
    assert metric.result() == 0
    assert feed(metric) == EXPECTED[make]


@pytest.mark.parametrize("make", EXPECTED)
def test_checkpoint_restores_counts_and_unfinished_episodes(make, tmp_path):
    metric = make()
    feed(metric, EPISODES[:2])
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))

    restored = make()
    tf.train.Checkpoint(metric=restored).restore(path)
    assert feed(restored, EPISODES[2:]) == EXPECTED[make]


def test_a_metric_that_saw_nothing_can_be_saved(tmp_path):
    metric = py_metrics.AverageReturnMetric()
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))
    feed(metric)
    tf.train.Checkpoint(metric=metric).restore(path)
    assert metric.result() == 0


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (py_metrics.NumberOfEpisodes, 2),
        (py_metrics.EnvironmentSteps, 3),
        # The returns are 3 and 7; counting the padding makes it (3 + 3 + 3 + 7) / 4.
        (py_metrics.AverageReturnMetric, 5.0),
        (py_metrics.AverageEpisodeLengthMetric, 1.5),
    ],
)
@pytest.mark.parametrize("make_frame", [frame, single])
def test_the_padding_of_an_episode_ends_no_other(make, expected, make_frame):
    padded = [
        make_frame((FIRST, MID, 1.0)),
        make_frame((MID, LAST, 2.0)),
        make_frame((LAST, LAST, 0.0)),
        make_frame((LAST, LAST, 0.0)),
        make_frame((LAST, FIRST, 0.0)),
    ]
    single_step = [make_frame((FIRST, LAST, 7.0))]
    assert feed(make(), padded + single_step) == expected


def test_unlimited_buffer_averages_over_all_episodes():
    metric = py_metrics.AverageReturnMetric(buffer_size=np.inf)
    rewards = np.arange(25.0)
    assert feed(metric, [frame((FIRST, LAST, r)) for r in rewards]) == rewards.mean()


def test_another_batch_size_is_refused():
    metric = py_metrics.AverageReturnMetric()
    feed(metric)
    with pytest.raises(ValueError, match=r"AverageReturn: .*batch of 1.*saw, 2"):
        metric(frame((FIRST, MID, 0.0)))


def test_counter_counts_its_calls_and_environment_steps_start_where_told():
    counter = py_metrics.CounterMetric()
    counter()
    counter()
    assert counter.result() == 2
    steps = py_metrics.EnvironmentSteps()
    steps.reset(100)
    assert feed(steps) == 106


def test_aggregate_is_the_mean_over_metrics():
    metrics = [py_metrics.CounterMetric() for _ in range(2)]
    metrics[0]()
    assert py_metrics.CounterMetric.aggregate(metrics) == 0.5


def test_log_names_prefix_and_metric(caplog):
    with caplog.at_level(logging.INFO):
        py_metrics.EnvironmentSteps().log()
    assert caplog.messages == ["Metrics/EnvironmentSteps = 0"]


def test_summaries_are_named_after_prefix_and_step_metric(tmp_path):
    steps, average = py_metrics.EnvironmentSteps(), py_metrics.AverageReturnMetric()
    for trajectory in EPISODES:
        steps(trajectory)
        average(trajectory)
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        average.tf_summaries(train_step=7, step_metrics=[steps, average])
    events = EventAccumulator(str(tmp_path)).Reload()
    written = {
        tag: (event.step, tf.make_ndarray(event.tensor_proto))
        for tag in events.Tags()["tensors"]
        for event in events.Tensors(tag)
    }
    assert written == {
        "Metrics/AverageReturn": (7, 31.5),
        "Metrics_vs_EnvironmentSteps/AverageReturn": (6, 31.5),
    }


@pytest.mark.parametrize("batched", [True, False])
def test_vector_and_nested_rewards_are_summed(batched):
    rewards = {"a": np.float32([1.0]), "b": np.float32([[2.0, 4.0]])}
    trajectory = frame((FIRST, LAST, 0.0))._replace(reward=rewards)
    if not batched:
        trajectory = tf.nest.map_structure(lambda x: x[0], trajectory)
    assert feed(py_metrics.AverageReturnMetric(), [trajectory]) == 7


class Rewarded(py_metrics.StreamingMetric):
    """How many steps of an episode were rewarded, as a user would write it."""

    def __init__(self, name="Rewarded", batch_size=None):
        self._np_state = numpy_storage.NumpyState()
        super().__init__(name, batch_size=batch_size)

    def _reset(self, batch_size):
        self._np_state.steps = np.zeros(batch_size)

    def _batched_call(self, trajectory):
        self._np_state.steps[trajectory.is_first()] = 0
        self._np_state.steps += trajectory.reward > 1
        self.add_to_buffer(self._np_state.steps[trajectory.is_last()])


def test_a_metric_of_ones_own_is_saved_with_its_numpy_state(tmp_path):
    metric = Rewarded()
    feed(metric, EPISODES[:2])
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))
    restored = Rewarded()
    tf.train.Checkpoint(metric=restored).restore(path)
    assert feed(restored, EPISODES[2:]) == feed(metric, EPISODES[2:]) == 2


def test_deque_drops_the_oldest():
    deque = py_metrics.NumpyDeque(3, np.int32)
    deque.extend([1, 2, 3, 4])
    assert deque.to_list() == [2, 3, 4]
    assert deque.last == 4
    assert deque.mean() == 3


def test_last_of_an_empty_deque_is_an_error():
    with pytest.raises(RuntimeError, match="the deque is empty"):
        _ = py_metrics.NumpyDeque(3, np.int32).last


def test_python_metric_is_called_from_a_graph(tmp_path):
    metric = TFPyMetric(py_metrics.AverageReturnMetric())

    @tf.function
    def observe(trajectory):
        return metric(trajectory), metric.result()

    for trajectory in EPISODES:
        _, result = observe(tf.nest.map_structure(tf.constant, trajectory))
    assert result == 31.5
    assert metric.name == "AverageReturn"
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))
    metric.reset()
    assert metric.result() == 0
    tf.train.Checkpoint(metric=metric).restore(path)
    assert metric.result() == 31.5


def test_python_metric_gives_its_result_after_the_loop_that_calls_it():
    class Slow(py_metrics.EnvironmentSteps):
        def call(self, trajectory):
            time.sleep(0.001)
            super().call(trajectory)

    metric, other = TFPyMetric(Slow()), tf.Variable(0)

    @tf.function
    def observe(trajectory):
        metric.reset()
        for _ in tf.range(3):
            other.assign_add(1)  # TensorFlow orders the loop by this variable.
            metric(trajectory)
        return metric.result()

    frame = tf.nest.map_structure(tf.constant, EPISODES[0])
    steps = int(np.sum(EPISODES[0].step_type != LAST))
    assert [int(observe(frame)) for _ in range(20)] == [3 * steps] * 20


def test_all_fields_of_an_unbatched_frame_get_a_batch():
    seen = []

    class Seen(py_metrics.StreamingMetric):
        def _reset(self, batch_size):
            pass

        def _batched_call(self, trajectory):
            seen.append(trajectory)

    one = single((FIRST, MID, 1.0))._replace(observation=np.zeros(3))
    Seen()(one)
    assert seen[0].observation.shape == (1, 3)
    assert seen[0].discount.shape == (1,)


def test_a_deque_of_nothing_is_refused():
    with pytest.raises(ValueError, match="maxlen: got 0, expected"):
        py_metrics.NumpyDeque(0, np.float32)
