import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils.batched_observer_unbatching import BatchedObserverUnbatching


@pytest.fixture
def seen():
    """What each observer has seen, in the order in which they were made."""
    return []


@pytest.fixture
def make_observer(seen):
    def make():
        seen.append([])
        return seen[-1].append

    return make


def test_each_row_goes_to_an_observer_of_its_own(seen, make_observer):
    observer = BatchedObserverUnbatching(make_observer, batch_size=2)
    for step in range(2):
        observer({"a": np.array([step, step + 10]), "b": (np.zeros((2, 3)),)})
    assert [[int(frame["a"]) for frame in frames] for frames in seen] == [
        [0, 1],
        [10, 11],
    ]
    assert seen[0][0]["b"][0].shape == (3,)


def test_takes_eager_tensors(seen, make_observer):
    BatchedObserverUnbatching(make_observer, 2)(tf.constant([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(seen[1][0], [3, 4])


def test_another_number_of_rows_is_an_error(seen, make_observer):
    observer = BatchedObserverUnbatching(make_observer, 2)
    with pytest.raises(ValueError, match="batched_trajectory: got 3 rows, expected 2"):
        observer(np.zeros(3))
    assert seen == [[], []]


def test_batch_size_must_be_positive(make_observer):
    with pytest.raises(ValueError, match=r"batch_size: expected .* got 0"):
        BatchedObserverUnbatching(make_observer, 0)
