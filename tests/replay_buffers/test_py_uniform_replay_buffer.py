import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import PyUniformReplayBuffer
from tfrl.specs import array_spec

ID_SPEC = array_spec.ArraySpec((), np.int64, "id")


def _filled(capacity=4, frames=0, **kwargs):
    buffer = PyUniformReplayBuffer(ID_SPEC, capacity, **kwargs)
    for i in range(frames):
        buffer.add_batch(np.array([i]))
    return buffer


@pytest.mark.parametrize(("frames", "size"), [(0, 0), (3, 3), (4, 4), (9, 4)])
def test_size_grows_up_to_the_capacity(frames, size):
    buffer = _filled(frames=frames)
    assert buffer.size == buffer.num_frames() == size


@pytest.mark.parametrize("frames", [0, 3, 4, 9])
def test_gather_all_returns_the_newest_frames_oldest_first(frames):
    expected = [list(range(max(0, frames - 4), frames))]
    np.testing.assert_array_equal(_filled(frames=frames).gather_all(), expected)


def test_clear_empties_the_buffer():
    buffer = _filled(frames=6)
    buffer.clear()
    assert buffer.size == 0
    buffer.add_batch(np.array([9]))
    np.testing.assert_array_equal(buffer.gather_all(), [[9]])


@pytest.mark.parametrize("num_steps", [1, 2, 4])
@pytest.mark.parametrize("frames", [4, 5, 7, 8])
def test_samples_are_exactly_the_windows_that_do_not_cross_the_seam(num_steps, frames):
    items = _filled(4, frames, seed=0).get_next(200, num_steps)
    windows = {
        tuple(range(start, start + num_steps))
        for start in range(frames - 4, frames - num_steps + 1)
    }
    assert {tuple(window) for window in items} == windows


def test_samples_are_uniform():
    items = _filled(10, 17, seed=1).get_next(20_000, 3)
    _, counts = np.unique(items[:, 0], return_counts=True)
    assert len(counts) == 8
    chi_square = np.sum((counts - 2500) ** 2 / 2500)
    # The 0.1 % and 99.9 % points of chi-square with 7 degrees of freedom.
    assert 0.6 < chi_square < 24.3


def test_shapes_of_nested_samples():
    spec = {"x": array_spec.ArraySpec((3,), np.float32), "y": (ID_SPEC,)}
    buffer = PyUniformReplayBuffer(spec, 8)
    for i in range(8):
        buffer.add_batch({"x": np.full([1, 3], i, np.float32), "y": (np.array([i]),)})
    items = buffer.get_next(5, 2)
    assert items["x"].shape == (5, 2, 3)
    assert items["x"].dtype == np.float32
    np.testing.assert_array_equal(items["x"][..., 0], items["y"][0])
    assert buffer.get_next()["x"].shape == (3,)
    steps = buffer.get_next(5, 2, time_stacked=False)
    assert [step["x"].shape for step in steps] == [(5, 3), (5, 3)]
    np.testing.assert_array_equal(steps[0]["y"][0] + 1, steps[1]["y"][0])


def test_samples_are_copies():
    buffer = _filled(frames=4)
    items = buffer.get_next(2)
    items[:] = -1
    assert buffer.gather_all().min() == 0


def test_datasets_give_the_buffers_windows():
    buffer = _filled(4, frames=6)
    dataset = buffer.as_dataset(5, 2)
    assert dataset.element_spec == tf.TensorSpec([5, 2], tf.int64)
    for items in dataset.take(10):
        np.testing.assert_array_equal(items[:, 0] + 1, items[:, 1])
        assert np.all((items >= 2) & (items < 6))


def test_datasets_see_every_write():
    buffer = _filled(1)
    iterator = iter(buffer.as_dataset())
    for i in range(20):
        buffer.add_batch(np.array([i]))
        assert int(next(iterator)) == i


def test_dataset_items_are_preprocessed():
    dataset = _filled(frames=1).as_dataset(2, sequence_preprocess_fn=lambda x: x + 5)
    np.testing.assert_array_equal(next(iter(dataset)), [5, 5])


def test_the_same_seed_gives_the_same_samples():
    first, again, other = (_filled(50, 50, seed=s).get_next(9) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_restored_buffer_continues_bit_for_bit(tmp_path):
    buffer = _filled(5, frames=8, seed=3)
    buffer.get_next(4)
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "ckpt"))
    restored = _filled(5, seed=4)
    tf.train.Checkpoint(buffer=restored).restore(path).assert_consumed()
    for b in (buffer, restored):
        b.add_batch(np.array([50]))
    np.testing.assert_array_equal(restored.gather_all(), [[4, 5, 6, 7, 50]])
    np.testing.assert_array_equal(restored.get_next(9, 2), buffer.get_next(9, 2))


def test_sampling_an_empty_buffer_says_so():
    with pytest.raises(ValueError, match="is empty: num_steps=2 needs 2 frames"):
        _filled().get_next(num_steps=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        next(iter(_filled().as_dataset()))


def test_sampling_too_short_a_buffer_says_what_it_needs():
    message = "is too short: num_steps=3 needs 3 frames, and it holds 2"
    with pytest.raises(ValueError, match=message):
        _filled(frames=2).get_next(num_steps=3)


def test_windows_longer_than_the_ring_are_refused_at_once():
    with pytest.raises(ValueError, match=r"num_steps: got 5.*capacity=4"):
        _filled(frames=4).as_dataset(num_steps=5)


def test_batches_of_several_environments_are_refused():
    with pytest.raises(NotImplementedError, match=r"batch of 2.*a batch of 1"):
        _filled().add_batch(np.array([1, 2]))


def test_items_of_another_shape_or_dtype_are_refused():
    buffer = PyUniformReplayBuffer({"x": ID_SPEC}, 4)
    with pytest.raises(ValueError, match=r"items/x: got shape \(\), expected \(1,\)"):
        buffer.add_batch({"x": np.array(1)})
    with pytest.raises(ValueError, match="items/x: got dtype float64, expected int"):
        buffer.add_batch({"x": np.array([1.0])})
    with pytest.raises(ValueError, match="another structure"):
        buffer.add_batch({"y": np.array([1])})


def test_arrays_of_a_wider_dtype_are_cast():
    buffer = PyUniformReplayBuffer(array_spec.ArraySpec((2,), np.float32), 4)
    buffer.add_batch(np.array([[0.5, 2.0]], np.float64))
    frame = buffer.get_next()
    assert frame.dtype == np.float32
    np.testing.assert_array_equal(frame, [0.5, 2.0])


def test_parallel_calls_are_not_supported():
    with pytest.raises(NotImplementedError, match="num_parallel_calls: got 2"):
        _filled().as_dataset(num_parallel_calls=2)


# The deterministic pass


def _one_pass(buffer, *args, **kwargs):
    dataset = buffer.as_dataset(*args, single_deterministic_pass=True, **kwargs)
    return [items.tolist() for items in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("frames", [3, 4, 6])
def test_a_pass_gives_the_frames_in_order(frames):
    expected = list(range(max(0, frames - 4), frames))
    assert _one_pass(_filled(4, frames)) == expected


def test_a_pass_of_windows_keeps_the_shorter_last_one():
    assert _one_pass(_filled(5, frames=7), num_steps=2) == [[2, 3], [4, 5], [6]]


def test_a_pass_of_batches_keeps_the_smaller_last_one():
    assert _one_pass(_filled(5, frames=7), 2) == [[2, 3], [4, 5], [6]]


def test_batched_windows_of_a_pass_are_full():
    assert _one_pass(_filled(8, frames=10), 2, 3) == [[[2, 3, 4], [5, 6, 7]]]
    assert _one_pass(_filled(8, frames=6), 1, 3) == [[[0, 1, 2]], [[3, 4, 5]]]


def test_a_pass_is_preprocessed_and_may_be_repeated():
    buffer = _filled(4, frames=2)
    dataset = buffer.as_dataset(
        sequence_preprocess_fn=lambda x: -x, single_deterministic_pass=True
    )
    assert [int(x) for x in dataset] == [0, -1]
    buffer.add_batch(np.array([5]))
    assert [int(x) for x in dataset] == [0, -1, -5]


@pytest.mark.parametrize(
    ("sample_batch_size", "num_steps", "shape"),
    [(None, None, []), (None, 2, [None]), (3, None, [None]), (3, 2, [None, 2])],
)
def test_shapes_of_a_pass(sample_batch_size, num_steps, shape):
    dataset = _filled(4).as_dataset(
        sample_batch_size, num_steps, single_deterministic_pass=True
    )
    assert dataset.element_spec.shape.as_list() == shape


def test_a_pass_through_an_empty_or_short_buffer_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        _one_pass(_filled())
    with pytest.raises(tf.errors.InvalidArgumentError, match="is too short"):
        _one_pass(_filled(frames=1), 1, 2)


# Storing in another form


class _Negated(PyUniformReplayBuffer):
    """Stores the negative of each frame, as int32, and counts what it overwrites."""

    overwritten = 0

    def _encoded_data_spec(self):
        return array_spec.ArraySpec((), np.int32)

    def _encode(self, item):
        return -item

    def _decode(self, items):
        return -items.astype(np.int64)

    def _on_delete(self, encoded_item):
        type(self).overwritten += int(encoded_item)


def test_a_subclass_may_store_frames_in_another_form():
    buffer = _Negated(ID_SPEC, 4)
    for i in range(1, 7):
        buffer.add_batch(np.array([i]))
    np.testing.assert_array_equal(buffer.gather_all(), [[3, 4, 5, 6]])
    assert buffer.get_next(2, 3).dtype == np.int64
    assert set(buffer.get_next(50)) == {3, 4, 5, 6}
    assert _one_pass(buffer) == [3, 4, 5, 6]
    assert buffer._storage.get(0) == -5
    assert _Negated.overwritten == -1 - 2
