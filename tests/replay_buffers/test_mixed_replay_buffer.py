import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import (
    MixedReplayBuffer,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)

ID_SPEC = tf.TensorSpec([], tf.int64, "id")


def filled(*numbers, spec=ID_SPEC):
    """A buffer of numbers."""
    buffer = TFUniformReplayBuffer(spec, batch_size=1, max_length=50)
    for number in numbers:
        buffer.add_batch(tf.constant([number], spec.dtype))
    return buffer


def mixed(share, seed=0):
    """A buffer whose new frames are below 100, and whose recorded ones are above."""
    recorded = filled(*range(100, 110))
    return MixedReplayBuffer(filled(*range(10)), recorded, share, seed=seed)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.29, 0.5, 0.7, 1.0])
def test_each_minibatch_of_a_sample_has_the_share_of_new_frames(share):
    items, info = mixed(share).sample(300, num_steps=2, seed=3)
    assert items.shape == info.ids.shape == (300, 2)
    np.testing.assert_array_equal(items[:, 1] - items[:, 0], 1)
    # Three minibatches that a loop draws together.
    is_new = np.reshape(items[:, 0] < 100, [3, 100])
    np.testing.assert_array_equal(is_new.sum(axis=1), round(100 * share))


def test_a_draw_depends_on_the_seed_alone_and_covers_both_buffers():
    buffer = mixed(0.5)
    (first, _), (again, _), (other, _) = (buffer.sample(64, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    drawn = np.concatenate([buffer.sample(64, seed=s)[0] for s in range(8)])
    assert set(drawn) == {*range(10), *range(100, 110)}


def test_new_frames_alone_are_added_counted_and_cleared():
    buffer = mixed(0.5)
    buffer.add_batch(tf.constant([10], tf.int64))
    assert buffer.num_frames() == 11
    assert (buffer.batch_size, buffer.max_length, buffer.capacity) == (1, 50, 50)
    assert buffer.supports_xla
    assert not buffer.calls_python
    buffer.clear()
    assert buffer.num_frames() == 0


def test_a_checkpoint_holds_the_new_frames_and_the_next_draw(tmp_path):
    buffer = mixed(0.5)
    buffer.get_next(4)
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "c"))
    expected, _ = buffer.get_next(40)
    other = MixedReplayBuffer(filled(), filled(*range(100, 110)), 0.5, seed=7)
    tf.train.Checkpoint(buffer=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(other.get_next(40)[0], expected)
    saved = tf.train.list_variables(path)
    assert [shape for _, shape in saved].count([51]) == 1


def test_errors_name_the_argument():
    new, recorded = filled(), filled()
    with pytest.raises(ValueError, match=r"new_share: expected .*, got 1\.5"):
        MixedReplayBuffer(new, recorded, 1.5)
    prioritized = TFPrioritizedReplayBuffer(ID_SPEC, batch_size=1, max_length=5)
    with pytest.raises(ValueError, match="recorded: got a TFPrioritizedReplayBuffer"):
        MixedReplayBuffer(new, prioritized, 0.5)
    others = filled(spec=tf.TensorSpec([], tf.float32))
    with pytest.raises(ValueError, match="recorded: its data_spec is"):
        MixedReplayBuffer(new, others, 0.5)
    with pytest.raises(NotImplementedError, match="give sample_batch_size"):
        mixed(0.5).get_next()
