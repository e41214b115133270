import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import EpisodicReplayBuffer, StatefulEpisodicReplayBuffer
from tfrl.replay_buffers.episodic_replay_buffer import Episodes
from tfrl.trajectories import trajectory

SPEC = tf.TensorSpec([], tf.int64, "x")


def _begins(items):
    """A frame begins an episode if it ends with 0 ..."""
    return items % 10 == 0


def _ends(items):
    """... and ends one if it ends with 9."""
    return items % 10 == 9


def _first_begins(items):
    return items[0] % 10 == 0


def _last_ends(items):
    return items[-1] % 10 == 9


def _buffer(capacity=4, sequences=False, **kwargs):
    return EpisodicReplayBuffer(
        SPEC,
        capacity,
        begin_episode_fn=_first_begins if sequences else _begins,
        end_episode_fn=_last_ends if sequences else _ends,
        **kwargs,
    )


def _with_episodes(*episodes, **kwargs):
    buffer = _buffer(sequences=True, **kwargs)
    episode_id = buffer.create_episode_ids()
    for episode in episodes:
        episode_id = buffer.add_sequence(tf.constant(episode, tf.int64), episode_id)
    return buffer


def _all(buffer):
    return buffer.gather_all().numpy().tolist()


def _one_pass(buffer, *args):
    dataset = buffer.as_dataset(*args, single_deterministic_pass=True)
    return [items.tolist() for items, _ in dataset.as_numpy_iterator()]


# Writing


def test_first_ids_say_that_there_is_no_episode_yet():
    assert _buffer().create_episode_ids().numpy() == -1
    np.testing.assert_array_equal(_buffer().create_episode_ids(3), [-1, -1, -1])
    np.testing.assert_array_equal(
        _buffer().create_episode_ids(tf.constant(2)), [-1, -1]
    )


def test_more_episodes_at_once_than_the_capacity_are_refused():
    with pytest.raises(ValueError, match=r"num_episodes: got 5.*capacity=4"):
        _buffer().create_episode_ids(5)


def test_frames_go_to_their_writers_episodes():
    buffer = _buffer()
    ids = buffer.create_episode_ids(2)
    for frames, expected in [
        ([10, 20], [0, 1]),
        ([11, 21], [0, 1]),
        ([12, 30], [0, 2]),
        ([40, 31], [3, 2]),
    ]:
        ids = buffer.add_batch(tf.constant(frames, tf.int64), ids)
        np.testing.assert_array_equal(ids, expected)
    assert _all(buffer) == [[10, 11, 12, 20, 21, 30, 31, 40]]
    assert int(buffer.num_frames()) == 8
    assert int(buffer.num_writes) == 4


def test_sequences_begin_or_continue_an_episode():
    buffer = _with_episodes([10, 11], [12, 13], [20, 21])
    assert _one_pass(buffer) == [[10, 11, 12, 13], [20, 21]]


def test_a_new_episode_takes_the_place_of_the_oldest():
    buffer = _with_episodes([10], [20, 21], [30], capacity=2)
    assert _all(buffer) == [[20, 21, 30]]
    np.testing.assert_array_equal(
        buffer.get_valid_ids_mask([-1, 0, 1, 2]), [0, 0, 1, 1]
    )


def test_writing_to_a_replaced_episode_does_nothing():
    buffer = _buffer(capacity=1)
    old = buffer.add_batch(tf.constant([10], tf.int64), buffer.create_episode_ids(1))
    new = buffer.add_batch(tf.constant([20], tf.int64), buffer.create_episode_ids(1))
    np.testing.assert_array_equal(
        buffer.add_batch(tf.constant([11], tf.int64), old), old
    )
    assert _all(buffer) == [[20]]
    buffer.add_batch(tf.constant([21], tf.int64), new)
    assert _all(buffer) == [[20, 21]]


def test_trajectories_tell_by_themselves_where_episodes_begin_and_end():
    def spec(dtype):
        return tf.TensorSpec([], dtype)

    data_spec = trajectory.Trajectory(
        spec(tf.int32), spec(tf.int64), (), (), spec(tf.int32), *[spec(tf.float32)] * 2
    )
    buffer = EpisodicReplayBuffer(data_spec, completed_only=True)
    stateful = StatefulEpisodicReplayBuffer(buffer, num_episodes=1)

    def add(step_type, next_step_type, observation):
        one = tf.ones([1])
        stateful.add_batch(
            trajectory.Trajectory(
                tf.constant([step_type]),
                tf.constant([observation], tf.int64),
                (),
                (),
                tf.constant([next_step_type]),
                one,
                one,
            )
        )

    add(0, 1, 1)
    assert _shape(stateful) == (1, 0)
    add(1, 2, 2)
    np.testing.assert_array_equal(stateful.gather_all().observation, [[1, 2]])
    add(0, 1, 3)
    np.testing.assert_array_equal(stateful.episode_ids, [1])


def _shape(buffer):
    return tuple(buffer.gather_all().observation.shape)


def test_items_that_are_no_trajectories_need_episode_functions():
    buffer = EpisodicReplayBuffer(SPEC)
    with pytest.raises(TypeError, match=r"begin_episode_fn: .* no method is_first\(\)"):
        buffer.add_batch(tf.constant([1], tf.int64), buffer.create_episode_ids(1))
    with pytest.raises(TypeError, match="end_episode_fn: got 3"):
        EpisodicReplayBuffer(SPEC, end_episode_fn=3)


def test_a_sequence_needs_scalar_episode_functions():
    buffer = _buffer()
    with pytest.raises(ValueError, match=r"begin_episode_fn: returned shape \(2,\)"):
        buffer.add_sequence(tf.constant([1, 2], tf.int64), buffer.create_episode_ids())


def test_ids_of_the_wrong_rank_or_none_are_refused():
    with pytest.raises(
        ValueError, match=r"episode_ids: got shape \(\), expected a vec"
    ):
        _buffer().add_batch(tf.constant([1], tf.int64), tf.constant(0, tf.int64))
    with pytest.raises(ValueError, match=r"got None.*StatefulEpisodicReplayBuffer"):
        _buffer().add_batch(tf.constant([1], tf.int64))


def test_items_of_another_dtype_are_refused():
    with pytest.raises(ValueError, match="got dtype float32, expected int64"):
        _buffer().add_batch(tf.zeros([1]), tf.constant([-1], tf.int64))


def test_episodes_are_extracted_and_cleared():
    buffer = _with_episodes([10, 11, 19], [20], [30, 31])
    episodes = buffer.extract([2, 0], clear_data=True)
    np.testing.assert_array_equal(episodes.length, [2, 3])
    np.testing.assert_array_equal(episodes.completed, [0, 1])
    assert _all(buffer) == [[20]]
    copy = _buffer()
    copy._begin_episode_fn = lambda _: [False, False]
    ids = copy.extend_episodes(copy.create_episode_ids(3), [2, 0], episodes)
    np.testing.assert_array_equal(ids, [1, -1, 0])
    assert _all(copy) == [[30, 31, 10, 11, 19]]


def test_extending_begins_or_continues_episodes():
    source = _with_episodes([10, 11], [20])
    episodes = source.extract([0, 1])
    buffer = _with_episodes([50, 51])
    buffer._begin_episode_fn = lambda episodes: [True, False]
    assert isinstance(episodes, Episodes)
    ids = buffer.extend_episodes(tf.constant([0, 0], tf.int64), [1, 0], episodes)
    np.testing.assert_array_equal(ids, [0, 1])
    assert _one_pass(buffer) == [[50, 51, 20], [10, 11]]


def test_clear_empties_the_episodes_and_keeps_their_ids():
    buffer = _buffer()
    stateful = StatefulEpisodicReplayBuffer(buffer, 1)
    stateful.add_batch(tf.constant([10], tf.int64))
    stateful.clear()
    assert int(stateful.num_frames()) == 0
    stateful.add_batch(tf.constant([11], tf.int64))
    np.testing.assert_array_equal(stateful.episode_ids, [0])
    assert _all(stateful) == [[11]]


# Sampling


def test_get_next_returns_whole_episodes_uniformly():
    buffer = _with_episodes([10, 11, 12, 13], [20], [30, 31], seed=4)
    counts = {(10, 11, 12, 13): 0, (20,): 0, (30, 31): 0}
    for _ in range(300):
        items, info = buffer.get_next()
        counts[tuple(items.numpy())] += 1
        assert int(info.ids) == int(items[0]) // 10 - 1
    chi_square = sum((n - 100) ** 2 / 100 for n in counts.values())
    assert chi_square < 13.8  # The 99.9 % point with 2 degrees of freedom.


def test_windows_are_uniform_over_all_that_lie_in_an_episode():
    buffer = _with_episodes([10, 11, 12, 13], [20], [30, 31, 32], seed=8)
    dataset = buffer.as_dataset(sample_batch_size=100, num_steps=2)
    assert dataset.element_spec[0].shape == [100, 2]
    windows = np.concatenate([items for items, _ in dataset.take(10)])
    starts, counts = np.unique(windows[:, 0], return_counts=True)
    np.testing.assert_array_equal(starts, [10, 11, 12, 30, 31])
    np.testing.assert_array_equal(windows[:, 1], windows[:, 0] + 1)
    chi_square = np.sum((counts - 200) ** 2 / 200)
    assert chi_square < 18.5  # The 99.9 % point with 4 degrees of freedom.


def test_only_completed_episodes_are_given_out_on_request():
    buffer = _with_episodes([10, 19], [20, 21], [30, 39], completed_only=True)
    windows = [items.numpy().tolist() for items, _ in buffer.as_dataset().take(20)]
    assert sorted(map(tuple, {tuple(w) for w in windows})) == [(10, 19), (30, 39)]
    assert _all(buffer) == [[10, 19, 30, 39]]
    assert _one_pass(buffer) == [[10, 19], [30, 39]]


def test_datasets_see_every_write():
    buffer = _buffer()
    stateful = StatefulEpisodicReplayBuffer(buffer, 1)
    iterator = iter(stateful.as_dataset())
    for i in range(1, 9):
        stateful.add_batch(tf.constant([i], tf.int64))
        assert len(next(iterator)[0]) == i


def test_the_same_seed_gives_the_same_elements():
    def elements(seed):
        buffer = _with_episodes(list(range(10, 19)), list(range(20, 29)), seed=seed)
        return next(iter(buffer.as_dataset(20, 2)))[0].numpy()

    np.testing.assert_array_equal(elements(1), elements(1))
    assert not np.array_equal(elements(1), elements(2))


def test_sampling_an_empty_buffer_says_so():
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        _buffer().get_next()
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        next(iter(_buffer().as_dataset(3, 2)))


def test_sampling_too_short_episodes_is_an_error_and_no_hang():
    buffer = _with_episodes([10, 11], [20])
    message = r"too short: .* an episode of at least 3 frames.*longest.*\] \[2\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        next(iter(buffer.as_dataset(num_steps=3)))


def test_whole_episodes_cannot_be_batched():
    with pytest.raises(ValueError, match="differ in length and cannot be batched"):
        _buffer().as_dataset(sample_batch_size=2)


def test_whole_episodes_can_be_padded_to_a_batch():
    buffer = _with_episodes([10, 11, 12], [20])
    dataset = buffer.as_dataset(single_deterministic_pass=True).map(lambda x, _: x)
    padded = next(iter(dataset.padded_batch(2)))
    np.testing.assert_array_equal(padded, [[10, 11, 12], [20, 0, 0]])
    ragged = next(iter(dataset.ragged_batch(2)))
    assert ragged.to_list() == [[10, 11, 12], [20]]


# The deterministic pass


def test_windows_of_a_pass_stay_within_their_episodes():
    episodes = ([10, 11, 12], [20], [30, 31, 32, 33])
    assert _one_pass(_with_episodes(*episodes), None, 2) == [
        [10, 11],
        [12],
        [20],
        [30, 31],
        [32, 33],
    ]
    full = _with_episodes(*episodes, dataset_drop_remainder=True)
    assert _one_pass(full, None, 2) == [[10, 11], [30, 31], [32, 33]]


def test_windows_of_a_pass_overlap_by_the_shift_and_are_batched():
    buffer = _with_episodes([10, 11, 12], [20], [30, 31, 32], dataset_window_shift=1)
    assert _one_pass(buffer, 3, 2) == [[[10, 11], [11, 12], [30, 31]], [[31, 32]]]


def test_items_are_preprocessed():
    buffer = _with_episodes([10, 11])
    dataset = buffer.as_dataset(
        2, 2, sequence_preprocess_fn=lambda x: -x, single_deterministic_pass=True
    )
    assert [items.tolist() for items, _ in dataset.as_numpy_iterator()] == [
        [[-10, -11]]
    ]


# State


def test_a_restored_buffer_continues_bit_for_bit(tmp_path):
    buffer = _buffer(seed=1)
    stateful = StatefulEpisodicReplayBuffer(buffer, 2)
    for i in range(10, 19):
        stateful.add_batch(tf.constant([i, i + 10], tf.int64))
    buffer.get_next()
    path = tf.train.Checkpoint(buffer=stateful).save(str(tmp_path / "ckpt"))
    restored = StatefulEpisodicReplayBuffer(_buffer(seed=5), 2)
    tf.train.Checkpoint(buffer=restored).restore(path).assert_consumed()
    for b in (stateful, restored):
        b.add_batch(tf.constant([19, 30], tf.int64))
    assert _all(restored) == _all(stateful)
    np.testing.assert_array_equal(restored.episode_ids, stateful.episode_ids)
    first, again = (
        [items.numpy().tolist() for items, _ in b.as_dataset(None, 3).take(9)]
        for b in (stateful, restored)
    )
    assert first == again


def test_writing_in_a_graph_traces_once():
    stateful = StatefulEpisodicReplayBuffer(_buffer(), 2)

    @tf.function
    def write(i):
        stateful.add_batch(tf.stack([i, i + 10]))

    for i in range(10, 15):
        write(tf.constant(i, tf.int64))
    assert write.experimental_get_tracing_count() == 1
    assert _one_pass(stateful) == [list(range(10, 15)), list(range(20, 25))]


def test_a_stateful_buffer_keeps_the_id_of_one_sequence():
    stateful = StatefulEpisodicReplayBuffer(_buffer(sequences=True))
    stateful.add_sequence(tf.constant([10, 11], tf.int64))
    stateful.add_sequence(tf.constant([12], tf.int64))
    assert int(stateful.episode_ids) == 0
    assert _all(stateful) == [[10, 11, 12]]


def test_a_stateful_buffer_wraps_an_episodic_one():
    with pytest.raises(TypeError, match="expected an EpisodicReplayBuffer"):
        StatefulEpisodicReplayBuffer(object())
