import numpy as np
import tensorflow as tf

from tfrl.replay_buffers import EpisodicTable

SPEC = (tf.TensorSpec([2], tf.float32, "x"), {"y": tf.TensorSpec([], tf.int64, "y")})


def _frames(*numbers):
    y = tf.constant(numbers, tf.int64)
    return tf.stack([tf.cast(y, tf.float32)] * 2, axis=-1), {"y": y}


def _rows(table):
    return [table.get_episode_values(i)[1]["y"].numpy().tolist() for i in range(3)]


def test_rows_start_empty():
    x, rest = EpisodicTable(SPEC, 3).get_episode_values(1)
    assert x.shape == (0, 2)
    assert rest["y"].shape == (0,)


def test_frames_are_added_to_several_rows_at_once():
    table = EpisodicTable(SPEC, 3)
    table.add([2, 0], _frames(5, 6))
    table.add([2], _frames(7))
    assert _rows(table) == [[6], [], [5, 7]]
    np.testing.assert_array_equal(table.get_episode_values(2)[0], [[5, 5], [7, 7]])


def test_sequences_are_appended():
    table = EpisodicTable(SPEC, 3)
    table.append(1, _frames(1, 2))
    table.append(1, _frames(3))
    assert _rows(table) == [[], [1, 2, 3], []]


def test_rows_are_extended_by_other_rows_lists():
    source, table = EpisodicTable(SPEC, 3), EpisodicTable(SPEC, 3)
    source.append(0, _frames(1, 2))
    source.append(2, _frames(3))
    table.append(1, _frames(9))
    table.extend([1, 0], source.get_episode_lists([0, 2]))
    assert _rows(table) == [[3], [9, 1, 2], []]


def test_a_slice_is_part_of_a_row():
    table = EpisodicTable(SPEC, 3)
    table.append(1, _frames(1, 2, 3, 4))
    x, rest = table.slice(table.get_episode_lists(1), 1, 2)
    np.testing.assert_array_equal(rest["y"], [2, 3])
    assert x.shape == (2, 2)


def test_rows_are_cleared_alone_or_all():
    table = EpisodicTable(SPEC, 3)
    table.add([0, 1, 2], _frames(5, 6, 7))
    table.clear_rows([1])
    assert _rows(table) == [[5], [], [7]]
    table.clear()
    assert _rows(table) == [[], [], []]


def test_rows_survive_a_checkpoint(tmp_path):
    table = EpisodicTable(SPEC, 3)
    table.append(1, _frames(1, 2))
    path = tf.train.Checkpoint(table=table).save(str(tmp_path / "ckpt"))
    restored = EpisodicTable(SPEC, 3)
    tf.train.Checkpoint(table=restored).restore(path).assert_consumed()
    assert _rows(restored) == [[], [1, 2], []]


def test_a_graph_keeps_the_order_of_writes_and_reads():
    table = EpisodicTable(SPEC, 3)

    @tf.function
    def write():
        table.add([0], _frames(1))
        table.clear_rows([0])
        table.add([0], _frames(2))
        table.append(0, _frames(3, 4))
        return table.get_episode_values(0)[1]["y"]

    np.testing.assert_array_equal(write(), [2, 3, 4])
