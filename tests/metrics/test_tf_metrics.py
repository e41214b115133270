"""Metrics in variables, against trajectories worked by hand."""

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tfrl.metrics import tf_metric, tf_metrics
from tfrl.metrics.tf_deque import TFDeque
from tfrl.trajectories import trajectory as traj

FIRST, MID, LAST = 0, 1, 2


def frame(*members):
    """A batched trajectory of `(step_type, next_step_type, reward)` members."""
    step_type, next_step_type, reward = zip(*members, strict=True)
    return traj.Trajectory(
        step_type=tf.constant(step_type),
        observation=(),
        action=(),
        policy_info=(),
        next_step_type=tf.constant(next_step_type),
        reward=tf.constant(reward, tf.float32),
        discount=tf.ones(len(members)),
    )


# Member 0: an episode of 2 steps (return 3), a reset, one step of the next.
# Member 1: an episode of 3 steps (return 60), then its reset.
EPISODES = [
    frame((FIRST, MID, 1.0), (FIRST, MID, 10.0)),
    frame((MID, LAST, 2.0), (MID, MID, 20.0)),
    frame((LAST, FIRST, 0.0), (MID, LAST, 30.0)),
    frame((FIRST, MID, 5.0), (LAST, FIRST, 0.0)),
]


def feed(metric, frames=EPISODES):
    for trajectory in frames:
        metric(trajectory)
    return metric.result().numpy()


def test_environment_steps_count_all_members_but_no_boundary():
    assert feed(tf_metrics.EnvironmentSteps()) == 6


def test_number_of_episodes_counts_last_steps_of_all_members():
    assert feed(tf_metrics.NumberOfEpisodes()) == 2


def test_returns_are_summed_within_episodes():
    assert feed(tf_metrics.AverageReturnMetric(batch_size=2)) == (3 + 60) / 2
    assert feed(tf_metrics.MaxReturnMetric(batch_size=2)) == 60
    assert feed(tf_metrics.MinReturnMetric(batch_size=2)) == 3


def test_episode_length_ignores_boundaries():
    assert feed(tf_metrics.AverageEpisodeLengthMetric(batch_size=2)) == 2.5


def test_episode_length_starts_anew_after_a_reset_in_mid_episode():
    metric = tf_metrics.AverageEpisodeLengthMetric()
    cut = [frame((FIRST, MID, 0.0)), frame((MID, MID, 0.0))]
    whole = [frame((FIRST, MID, 0.0)), frame((MID, LAST, 0.0))]
    assert feed(metric, cut + whole) == 2


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (tf_metrics.NumberOfEpisodes(), 2),
        (tf_metrics.EnvironmentSteps(), 3),
        # The returns are 3 and 7; counting the padding makes it (3 + 3 + 3 + 7) / 4.
        (tf_metrics.AverageReturnMetric(), 5.0),
        (tf_metrics.AverageReturnMultiMetric(tf.TensorSpec([])), 5.0),
        (tf_metrics.AverageEpisodeLengthMetric(), 1.5),
    ],
)
def test_the_padding_of_an_episode_ends_no_other(metric, expected):
    padded = [
        frame((FIRST, MID, 1.0)),
        frame((MID, LAST, 2.0)),
        frame((LAST, LAST, 0.0)),
        frame((LAST, LAST, 0.0)),
        frame((LAST, FIRST, 0.0)),
    ]
    single_step = [frame((FIRST, LAST, 7.0))]
    assert feed(metric, padded + single_step) == expected


def test_results_before_the_first_episode_ends():
    assert feed(tf_metrics.AverageReturnMetric(batch_size=2), EPISODES[:1]) == 0
    assert tf_metrics.MaxReturnMetric().result() == tf.float32.min
    assert tf_metrics.MinReturnMetric().result() == tf.float32.max


def test_only_the_last_buffer_size_episodes_count():
    metric = tf_metrics.AverageReturnMetric(buffer_size=2)
    episodes = [frame((FIRST, LAST, reward)) for reward in (100.0, 3.0, 5.0)]
    assert feed(metric, episodes) == 4


def test_more_episodes_at_once_than_the_buffer_holds_keep_the_last():
    metric = tf_metrics.AverageReturnMetric(batch_size=3, buffer_size=2)
    ends = [(FIRST, LAST, reward) for reward in (100.0, 3.0, 5.0)]
    assert feed(metric, [frame(*ends)]) == 4


@pytest.mark.parametrize("jit_compile", [False, True])
def test_episodes_can_be_kept_after_several_steps(jit_compile):
    metric = tf_metrics.AverageReturnMetric(batch_size=2, buffer_size=1)
    others = [tf_metrics.NumberOfEpisodes(), tf_metrics.EnvironmentSteps()]

    @tf.function(jit_compile=jit_compile)
    def show(frames):
        sums = tf.stack([metric.advance(each) for each in frames])
        rows = tf.nest.map_structure(lambda *columns: tf.stack(columns), *frames)
        metric.keep(sums, rows.is_episode_end())
        for other in others:
            other(rows)

    show(EPISODES)
    assert metric.result() == 60  # The later one of 3 and 60.
    assert [int(other.result()) for other in others] == [2, 6]


def test_vector_rewards_are_summed():
    trajectory = frame((FIRST, LAST, 0.0))._replace(reward=tf.constant([[1.0, 2.0]]))
    assert feed(tf_metrics.AverageReturnMetric(), [trajectory]) == 3


ALL = [
    tf_metrics.EnvironmentSteps,
    tf_metrics.NumberOfEpisodes,
    lambda: tf_metrics.AverageReturnMetric(batch_size=2),
    lambda: tf_metrics.MaxReturnMetric(batch_size=2),
    lambda: tf_metrics.MinReturnMetric(batch_size=2),
    lambda: tf_metrics.AverageEpisodeLengthMetric(batch_size=2),
]


@pytest.mark.parametrize("make", ALL)
def test_reset_forgets_everything(make):
    metric = make()
    start = metric.result().numpy()
    feed(metric, EPISODES[:3])
    metric.reset()
    assert metric.result().numpy() == start
    assert feed(metric) == feed(make())


@pytest.mark.parametrize("make", ALL)
def test_calling_returns_the_trajectory(make):
    returned = make()(EPISODES[0])
    assert isinstance(returned, traj.Trajectory)
    tf.nest.map_structure(tf.debugging.assert_equal, returned, EPISODES[0])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_metrics_in_a_graph_count_alike_and_trace_once(jit_compile):
    metrics = [make() for make in ALL]

    @tf.function(jit_compile=jit_compile)
    def observe(trajectory):
        for metric in metrics:
            metric(trajectory)

    for trajectory in EPISODES:
        observe(trajectory)

    results = [float(metric.result()) for metric in metrics]
    assert results == [6, 2, 31.5, 60, 3, 2.5]
    assert observe.experimental_get_tracing_count() == 1


def test_eager_calls_trace_once():
    metric = tf_metrics.AverageReturnMetric(batch_size=2)
    feed(metric)
    assert metric._call_function.experimental_get_tracing_count() == 1


def test_checkpoint_restores_counts_and_unfinished_episodes(tmp_path):
    metrics = [make() for make in ALL]
    for trajectory in EPISODES[:2]:
        for metric in metrics:
            metric(trajectory)
    path = tf.train.Checkpoint(metrics=metrics).save(str(tmp_path / "ckpt"))

    restored = [make() for make in ALL]
    status = tf.train.Checkpoint(metrics=restored).restore(path)
    status.assert_existing_objects_matched()

    for metric, make in zip(restored, ALL, strict=True):
        assert feed(metric, EPISODES[2:]) == feed(make())


def test_a_metric_of_ones_own_may_branch_on_tensors_in_a_graph():
    class Rewarded(tf_metrics.NumberOfEpisodes):
        def call(self, trajectory):
            if tf.reduce_sum(trajectory.reward) > 30:
                self.number_episodes.assign_add(1)
            return trajectory

    metric = Rewarded()

    @tf.function(autograph=False)
    def observe(trajectory):
        metric(trajectory)

    for trajectory in EPISODES:
        observe(trajectory)
    assert metric.result() == 0

    observe(EPISODES[2]._replace(reward=tf.constant([1.0, 30.0])))
    assert metric.result() == 1


def test_wrong_batch_size_names_metric_shape_and_remedy():
    metric = tf_metrics.AverageReturnMetric(batch_size=1)
    with pytest.raises(ValueError, match=r"AverageReturn: .*\(2,\).*\[1\].*batch_size"):
        metric(EPISODES[0])


def scalars(path):
    """What the event files hold: `{tag: [(step, value), ...]}`."""
    events = EventAccumulator(str(path)).Reload()
    return {
        tag: [(e.step, tf.make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }


def test_summaries_are_named_after_prefix_and_step_metric(tmp_path):
    steps = tf_metrics.EnvironmentSteps()
    average = tf_metrics.AverageReturnMetric(batch_size=2)
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        for train_step, trajectory in enumerate(EPISODES):
            steps(trajectory)
            average(trajectory)
            average.tf_summaries(train_step=train_step, step_metrics=[steps, average])
    assert scalars(tmp_path) == {
        "Metrics/AverageReturn": [(0, 0), (1, 3), (2, 31.5), (3, 31.5)],
        "Metrics_vs_EnvironmentSteps/AverageReturn": [
            (2, 0),
            (4, 3),
            (5, 31.5),
            (6, 31.5),
        ],
    }


def test_summaries_are_written_from_a_graph_without_a_prefix(tmp_path):
    metric = tf_metrics.NumberOfEpisodes(prefix="")
    writer = tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def observe(trajectory, step):
        metric(trajectory)
        with writer.as_default():
            metric.tf_summaries(train_step=step)

    for step in range(3):
        observe(EPISODES[step], tf.constant(step))
    writer.flush()
    assert scalars(tmp_path) == {"NumberOfEpisodes": [(0, 0), (1, 1), (2, 2)]}


def test_without_a_train_step_only_step_metrics_are_plotted_against(tmp_path):
    metric = tf_metrics.NumberOfEpisodes()
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        metric.tf_summaries(step_metrics=[tf_metrics.EnvironmentSteps()])
    assert set(scalars(tmp_path)) == {"Metrics_vs_EnvironmentSteps/NumberOfEpisodes"}


# Chosen actions


def test_chosen_actions_are_the_latest_without_those_of_boundaries(tmp_path):
    metric = tf_metrics.ChosenActionHistogram(buffer_size=5)
    for i, trajectory in enumerate(EPISODES):
        metric(trajectory._replace(action=tf.constant([10 + i, 20 + i])))
    assert sorted(metric.result().numpy()) == [11, 13, 20, 21, 22]

    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        metric.tf_summaries(train_step=4, step_metrics=[tf_metrics.EnvironmentSteps()])
    written = scalars(tmp_path)
    assert set(written) == {
        "Metrics/ChosenActionHistogram",
        "Metrics_vs_EnvironmentSteps/ChosenActionHistogram",
    }
    ((step, buckets),) = written["Metrics/ChosenActionHistogram"]
    assert step == 4
    assert buckets[:, 2].sum() == 5

    metric.reset()
    assert metric.result().shape == (0,)


def test_each_number_of_a_vector_of_actions_is_counted():
    metric = tf_metrics.ChosenActionHistogram(dtype=tf.int64)
    metric(EPISODES[2]._replace(action=tf.constant([[1, 2], [3, 4]])))
    assert metric.result().numpy().tolist() == [3, 4]
    assert metric.result().dtype == tf.int64


def test_nested_actions_have_no_histogram():
    trajectory = EPISODES[0]._replace(action={"a": tf.constant([1, 2])})
    with pytest.raises(ValueError, match=r"ChosenActionHistogram: .*one tensor"):
        tf_metrics.ChosenActionHistogram()(trajectory)


# Several rewards

SPEEDS_AND_COST = {
    "speed": tf.TensorSpec([2], tf.float32, "speed"),
    "cost": tf.TensorSpec([], tf.float32),
}


def rewarded(trajectory):
    """The rewards r as speeds `[r, 2 r]` and cost `-r`."""
    r = trajectory.reward
    rewards = {"speed": tf.stack([r, 2 * r], axis=-1), "cost": -r}
    return trajectory._replace(reward=rewards)


def test_returns_of_nested_rewards_are_kept_apart(tmp_path):
    metric = tf_metrics.AverageReturnMultiMetric(SPEEDS_AND_COST, batch_size=2)
    start = metric.result()
    for trajectory in map(rewarded, EPISODES):
        metric(trajectory)

    result = metric.result()
    assert type(result) is dict
    assert result["speed"].numpy().tolist() == [31.5, 63]
    assert result["cost"] == -31.5
    assert tf.nest.map_structure(lambda x: x.numpy().sum(), start) == {
        "speed": 0,
        "cost": 0,
    }

    steps = tf_metrics.EnvironmentSteps()
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        metric.tf_summaries(train_step=1, step_metrics=[steps, metric])
    name = "AverageReturnMultiMetric"
    values = {"cost": -31.5, "speed0": 31.5, "speed1": 63}
    assert scalars(tmp_path) == {
        **{f"Metrics/{name}/{key}": [(1, v)] for key, v in values.items()},
        **{
            f"Metrics_vs_EnvironmentSteps/{name}/{key}": [(0, v)]
            for key, v in values.items()
        },
    }
    metric.reset()
    assert metric.result()["cost"] == 0


def test_nested_rewards_are_summed_by_the_metrics_of_one_return():
    # 3 + 6 - 3 and 60 + 120 - 60.
    metric = tf_metrics.MaxReturnMetric(batch_size=2)
    assert feed(metric, map(rewarded, EPISODES)) == 120


def test_many_returns_are_saved_in_mid_episode(tmp_path):
    def make():
        return tf_metrics.AverageReturnMultiMetric(SPEEDS_AND_COST, batch_size=2)

    metric, restored = make(), make()
    for trajectory in EPISODES[:2]:
        metric(rewarded(trajectory))
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ckpt"))
    status = tf.train.Checkpoint(metric=restored).restore(path)
    status.assert_existing_objects_matched()
    for trajectory in EPISODES[2:]:
        restored(rewarded(trajectory))
    assert restored.result()["speed"].numpy().tolist() == [31.5, 63]


def test_other_rewards_than_the_specs_are_refused():
    metric = tf_metrics.AverageReturnMultiMetric(SPEEDS_AND_COST, batch_size=2)
    with pytest.raises((TypeError, ValueError), match="do not match"):
        metric(EPISODES[0])
    wrong = rewarded(EPISODES[0])
    wrong.reward["cost"] = tf.zeros([2, 1])
    with pytest.raises(ValueError, match=r"has shape \(2, 1\).*of shape \[2\]"):
        metric(wrong)


@pytest.mark.parametrize(
    ("names", "tags"),
    [
        (("x", "y"), ["M/x", "M/y"]),
        (("r",), ["M/r0", "M/r1"]),
        ((), ["M/Metric0", "M/Metric1"]),
        ((None,), ["M/Metric0", "M/Metric1"]),
        (("x", None), ["M/x", "M/Metric1"]),
        (("x", "y", "z"), ["M/Metric0", "M/Metric1"]),
    ],
)
def test_names_of_the_numbers_of_a_vector(tmp_path, names, tags):
    class Two(tf_metric.TFMultiMetricStepMetric):
        def call(self, trajectory):
            return trajectory

        def reset(self):
            pass

        def result(self):
            return tf.constant([1.0, 2.0])

    metric = Two("M", prefix="", metric_names=names)
    assert metric.metric_names == names
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        metric.tf_summaries(train_step=0)
    assert sorted(scalars(tmp_path)) == sorted(tags)


def test_deque_keeps_the_latest_values():
    deque = TFDeque(3, tf.int32)
    for value in (1, 2, 3, 4):
        deque.add(value)
    assert sorted(deque.data.numpy()) == [2, 3, 4]
    assert deque.length == 3
    assert deque.mean() == 3
    assert deque.max() == 4
    assert deque.min() == 2


def test_deque_of_vectors_reduces_over_values_only():
    deque = TFDeque(4, tf.float32, shape=(2,))
    deque.extend([[1.0, 2.0], [3.0, 8.0], [5.0, 5.0]], where=[True, True, False])
    assert deque.mean().numpy().tolist() == [2, 5]
    assert deque.max().numpy().tolist() == [3, 8]
    deque.clear()
    assert deque.mean().numpy().tolist() == [0, 0]
    assert deque.data.shape == (0, 2)


def test_deque_without_room_is_refused():
    with pytest.raises(ValueError, match="max_len: got 0"):
        TFDeque(0, tf.float32)


def test_initialising_the_variables_sets_a_metric_back():
    metric = tf_metrics.EnvironmentSteps()
    assert feed(metric) == 6
    assert metric.init_variables() is None
    assert int(metric.result()) == 0
