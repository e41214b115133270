"""Frames whose episodes have no boundary, and those that Minari cannot keep."""

import builtins

import numpy as np
import pytest
import tensorflow as tf

from tfrl import datasets
from tfrl.specs import array_spec

minari = pytest.importorskip("minari")

OBSERVATION = array_spec.ArraySpec((1,), np.float32)
ACTION = array_spec.BoundedArraySpec((), np.int64, 0, 1)


@pytest.fixture(autouse=True)
def sets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def episode(length, terminated=True):
    frames = datasets.frames_of_episode(
        observations=np.arange(length + 1, dtype=np.float32)[:, None],
        actions=np.ones(length, np.int64),
        rewards=np.arange(length, dtype=np.float32),
        terminations=np.arange(length) == (length - 1 if terminated else -1),
    )
    return [
        tf.nest.map_structure(lambda a, i=i: a[i], frames) for i in range(length + 1)
    ]


def write(frames, dataset_id="a-v0"):
    count = datasets.write_minari(frames, dataset_id, OBSERVATION, ACTION)
    assert count == len(frames)
    return list(minari.load_dataset(dataset_id).iterate_episodes())


def test_the_last_frame_stands_in_for_a_boundary_that_is_missing():
    # A replay buffer begins within an episode and ends within another one.
    first, second = write(episode(3)[1:] + episode(4)[:-1])
    np.testing.assert_array_equal(first.observations[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(first.terminations, [False, True])
    np.testing.assert_array_equal(second.observations[:, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(second.truncations, [False, False, True])
    assert not second.terminations.any()


def test_a_boundary_alone_is_no_episode():
    (only,) = write(episode(2)[-1:] + episode(1) + episode(1)[:1])
    np.testing.assert_array_equal(only.observations[:, 0], [0, 1])


def test_an_error_leaves_the_old_data_set_and_nothing_else(sets):
    write(episode(2))
    half = [frame._replace(discount=np.float32(0.5)) for frame in episode(3)]
    with pytest.raises(ValueError, match=r"^discount: got \[0.5\] in an episode, exp"):
        write(half)
    with pytest.raises(ValueError, match=r"^frames: got 1, expected at least one step"):
        write(episode(1)[:1])
    assert [path.name for path in sets.iterdir()] == ["a-v0"]
    assert minari.load_dataset("a-v0").total_steps == 2
    assert len(write(episode(3))[0].rewards) == 3
    assert [path.name for path in sets.iterdir()] == ["a-v0"]


def test_an_id_has_a_version_and_no_dots():
    assert datasets.minari_folder("space/of/a-v3").parts[-3:] == ("space", "of", "a-v3")
    for wrong in ("a", "../a-v0", "a.b-v0", "/a-v0", ""):
        expected = f"^dataset_id: got {wrong!r}, expected the id of a Minari dataset,"
        with pytest.raises(ValueError, match=expected):
            datasets.minari_folder(wrong)


def test_the_extra_is_named_where_minari_is_missing(monkeypatch):
    def without(name, *args, plain=builtins.__import__):
        if name.partition(".")[0] == "minari":
            raise ImportError(name, name="minari")
        return plain(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"minari is not .*pip install 'tfrl\[minari"):
        datasets.minari_folder("a-v0")
