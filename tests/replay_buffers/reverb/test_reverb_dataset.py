"""Sequences cut into pieces."""

import collections

import numpy as np
import tensorflow as tf

from tfrl.replay_buffers.reverb import reverb_dataset


def sequences(number, length):
    """Returns nests of `number` sequences: frame t of sequence i is `100 * i + t`."""
    frames = 100 * np.arange(number)[:, None] + np.arange(length)
    return {"frame": tf.constant(frames), "pair": tf.stack([frames, -frames], axis=-1)}


def test_truncation_keeps_whole_pieces():
    nest = (tf.range(7), tf.reshape(tf.range(14), [7, 2]))
    first, second = reverb_dataset.truncate_reshape_rows_by_num_steps(nest, 3)
    assert first.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert second.shape == (2, 3, 2)
    assert second[1, 0].numpy().tolist() == [6, 7]


def test_truncation_of_any_length_has_pieces_of_known_length():
    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.uint8)])
    def cut(frames):
        pieces = reverb_dataset.truncate_reshape_rows_by_num_steps(frames, 3)
        assert pieces.shape.as_list() == [None, 3, 5]
        return pieces

    assert cut(tf.zeros([8, 5], tf.uint8)).shape == (2, 3, 5)
    assert cut(tf.zeros([2, 5], tf.uint8)).shape == (0, 3, 5)


def test_pieces_in_order_come_from_each_sequence_in_turn():
    of_any_length = tf.data.Dataset.from_generator(
        lambda: ([1, 2, 3], [10, 20, 30, 40, 50]),
        output_signature=tf.TensorSpec([None], tf.int64),
    )
    pieces = reverb_dataset.pieces_in_order(of_any_length, 2)
    assert [p.numpy().tolist() for (p,) in pieces] == [[1, 2], [10, 20], [30, 40]]


def test_mixed_pieces_are_each_piece_once_in_another_order():
    dataset = tf.data.Dataset.from_tensors(sequences(6, 8)).map(lambda x: (x,))
    elements = list(reverb_dataset.mixed_pieces(dataset, 2, batch_size=6))
    assert len(elements) == 4
    firsts = []
    for (nest,) in elements:
        assert nest["frame"].shape == (6, 2)
        assert nest["pair"].shape == (6, 2, 2)
        np.testing.assert_array_equal(np.diff(nest["frame"], axis=1), 1)
        np.testing.assert_array_equal(nest["pair"][..., 0], nest["frame"])
        firsts.extend(nest["frame"].numpy()[:, 0].tolist())
    everything = [100 * s + f for s in range(6) for f in (0, 2, 4, 6)]
    assert sorted(firsts) == everything
    assert firsts != everything


def test_too_few_sequences_at_the_end_make_what_batches_they_can():
    dataset = tf.data.Dataset.from_tensors(sequences(3, 10)).map(lambda x: (x,))
    # 15 pieces: 3 batches of 4, and 3 left.
    elements = list(reverb_dataset.mixed_pieces(dataset, 2, batch_size=4))
    assert [nest["frame"].shape for (nest,) in elements] == [(4, 2)] * 3


def test_pieces_of_one_batch_are_of_many_sequences():
    """Two pieces of a batch are of one sequence as rarely as chance has it."""
    number, per_sequence = 32, 4
    dataset = tf.data.Dataset.from_tensors(sequences(number, 2 * per_sequence))
    dataset = dataset.map(lambda x: (x,)).repeat(50)
    mixed = reverb_dataset.mixed_pieces(dataset, 2, batch_size=number)
    same = pairs = 0
    for (nest,) in mixed:
        counts = collections.Counter((nest["frame"].numpy()[:, 0] // 100).tolist())
        same += sum(n * (n - 1) // 2 for n in counts.values())
        pairs += number * (number - 1) // 2
    chance = (per_sequence - 1) / (number * per_sequence - 1)
    assert abs(same / pairs - chance) < 5 * np.sqrt(chance / pairs)


def test_pieces_are_single_where_no_batch_is_asked_for():
    dataset = tf.data.Dataset.from_tensors(sequences(1, 6)).map(lambda x: (x,))
    elements = list(reverb_dataset.mixed_pieces(dataset, 3, batch_size=None))
    assert sorted(n["frame"].numpy().tolist() for (n,) in elements) == [
        [0, 1, 2],
        [3, 4, 5],
    ]
