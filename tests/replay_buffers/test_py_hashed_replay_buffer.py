import logging

import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import FrameBuffer, PyHashedReplayBuffer
from tfrl.specs import array_spec
from tfrl.trajectories import trajectory

SHAPE = (3, 2, 4)


def _spec(observation=None):
    scalar = array_spec.ArraySpec((), np.int32)
    real = array_spec.ArraySpec((), np.float32)
    observation = observation or array_spec.ArraySpec(SHAPE, np.uint8)
    return trajectory.Trajectory(scalar, observation, scalar, (), scalar, real, real)


def _stack(i, shape=SHAPE):
    """The images `i` to `i + 3`, each full of its number."""
    return np.broadcast_to(np.arange(i, i + 4), shape).astype(np.uint8)


def _filled(capacity=6, frames=0, shape=SHAPE, **kwargs):
    """A buffer whose frame `i` shows the stack `i` and has the action `i`."""
    spec = _spec(array_spec.ArraySpec(shape, np.uint8))
    buffer = PyHashedReplayBuffer(spec, capacity, **kwargs)
    one = np.ones([1], np.int32)
    for i in range(frames):
        buffer.add_batch(
            trajectory.Trajectory(
                one, _stack(i, shape)[None], i * one, (), one, *2 * [np.float32(one)]
            )
        )
    return buffer


def test_observations_come_back_as_they_were():
    buffer = _filled(6, frames=9, seed=0)
    items = buffer.get_next(30, 2)
    assert items.observation.shape == (30, 2, *SHAPE)
    assert items.observation.dtype == np.uint8
    for observation, action in zip(
        items.observation.reshape([-1, *SHAPE]), items.action.reshape([-1]), strict=True
    ):
        np.testing.assert_array_equal(observation, _stack(action))
    assert set(items.action.reshape([-1])) == set(range(3, 9))
    single = buffer.get_next()
    np.testing.assert_array_equal(single.observation, _stack(single.action))


def test_everything_and_datasets_come_back_as_they_were():
    buffer = _filled(6, frames=9)
    stacks = np.stack([_stack(i) for i in range(3, 9)])
    np.testing.assert_array_equal(buffer.gather_all().observation[0], stacks)
    dataset = buffer.as_dataset(single_deterministic_pass=True)
    np.testing.assert_array_equal([x.observation for x in dataset], stacks)
    items = next(iter(buffer.as_dataset(5, 2)))
    assert items.observation.shape == (5, 2, *SHAPE)
    np.testing.assert_array_equal(items.observation[..., 0, 0, 0], items.action)


def test_each_image_is_kept_once_and_only_as_long_as_it_is_needed():
    buffer = _filled(6, frames=4)
    assert len(buffer._frame_buffer) == 7
    # Of frames 3 to 8: the images 3 to 11.
    assert len(_filled(6, frames=9)._frame_buffer) == 9
    buffer.clear()
    assert len(buffer._frame_buffer) == 0
    assert buffer.gather_all().observation.shape == (1, 0, *SHAPE)


def test_stacks_of_four_take_a_quarter_of_the_memory():
    shape = (84, 84, 4)
    buffer = _filled(60, frames=200, shape=shape)
    frames = buffer._frame_buffer._frames.values()
    raw = 60 * np.prod(shape)
    assert sum(f.nbytes for f in frames) == 63 / 240 * raw
    # Nothing keeps the stacks alive that the images were cut from.
    assert all(f.base is None for f in frames)


def test_a_restored_buffer_goes_on(tmp_path):
    buffer = _filled(6, frames=9, seed=3)
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "ckpt"))
    restored = _filled(6, frames=2, seed=4)
    tf.train.Checkpoint(buffer=restored).restore(path).assert_consumed()
    for x, y in zip(buffer.get_next(9), restored.get_next(9), strict=True):
        np.testing.assert_array_equal(x, y)
    one = np.ones([1], np.int32)
    for i in range(9, 20):
        for b in (buffer, restored):
            b.add_batch(
                trajectory.Trajectory(
                    one, _stack(i)[None], i * one, (), one, *2 * [np.float32(one)]
                )
            )
    np.testing.assert_array_equal(
        restored.gather_all().observation, buffer.gather_all().observation
    )
    assert len(restored._frame_buffer) == len(buffer._frame_buffer) == 9


def test_it_tells_how_much_it_stores(caplog):
    with caplog.at_level(logging.INFO, "tfrl"):
        _filled(6, frames=5, log_interval=2)
    assert caplog.messages == [
        "0 frames are stored as 0 different slices.",
        "2 frames are stored as 5 different slices.",
        "4 frames are stored as 7 different slices.",
    ]


def test_the_spec_must_be_of_trajectories_of_one_array():
    with pytest.raises(ValueError, match=r"data_spec: got .*expected a Trajectory"):
        PyHashedReplayBuffer(array_spec.ArraySpec(SHAPE, np.uint8), 5)
    with pytest.raises(ValueError, match=r"at 'observation'.*one ArraySpec of at"):
        PyHashedReplayBuffer(_spec(array_spec.ArraySpec((), np.uint8)), 5)
    with pytest.raises(ValueError, match="at 'observation'"):
        PyHashedReplayBuffer(_spec({"x": array_spec.ArraySpec(SHAPE, np.uint8)}), 5)


# Frames


def test_equal_frames_have_one_key_until_all_are_deleted():
    frames = FrameBuffer()
    key = frames.add_frame(np.arange(4))
    assert frames.add_frame(np.arange(4)) == key
    assert frames.add_frame(np.arange(4)[None]) != key
    assert frames.add_frame(np.arange(4, dtype=np.int32)) != key
    assert len(frames) == 3
    frames.on_delete([key])
    assert len(frames) == 3
    frames.on_delete([key])
    assert len(frames) == 2


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_compressing_may_go_along_any_axis(axis):
    frames = FrameBuffer()
    observation = np.random.default_rng(0).integers(0, 9, [3, 4, 5])
    keys = frames.compress(observation, axis)
    assert keys.shape == (observation.shape[axis],)
    assert keys.dtype == np.int64
    np.testing.assert_array_equal(frames.decompress(keys, axis), observation)


def test_frames_whose_hashes_collide_stay_apart(monkeypatch):
    class Colliding:
        def __init__(self, *args, **kwargs):
            pass

        def digest(self):
            return (2**63 - 1).to_bytes(8, "little")

    monkeypatch.setattr("hashlib.blake2b", Colliding)
    frames = FrameBuffer()
    first, second = frames.compress(np.array([[1, 2]]))
    assert (first, second) == (2**63 - 1, -(2**63))
    np.testing.assert_array_equal(frames.decompress([first, second]), [[1, 2]])
    assert frames.compress(np.array([[2, 1]])).tolist() == [second, first]


def test_frames_are_copies():
    frames = FrameBuffer()
    array = np.zeros([2, 1])
    keys = frames.compress(array)
    array[:] = 7
    np.testing.assert_array_equal(frames.decompress(keys), [[0], [0]])


def test_frames_of_several_forms_are_saved():
    frames, restored = FrameBuffer(), FrameBuffer()
    keys = [
        frames.add_frame(np.ones(shape, dtype))
        for shape, dtype in [((2,), np.uint8), ((3,), np.uint8), ((2,), np.float32)]
    ]
    frames.add_frame(np.ones([2], np.uint8))
    restored.add_frame(np.zeros([9]))
    restored.deserialize(frames.serialize())
    assert len(restored) == 3
    restored.on_delete(keys)
    assert len(restored) == 1
    np.testing.assert_array_equal(restored.decompress([keys[0]]), np.ones([2]))


def test_keys_are_the_same_in_every_process():
    # Python salts `hash(bytes)`; these are BLAKE2b's first 64 bits.
    assert FrameBuffer().add_frame(np.arange(4, dtype=np.uint8)) == -7437326522806203910
