import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec
from tfrl.utils.numpy_storage import NumpyState, NumpyStorage

SPEC = (
    array_spec.ArraySpec((2,), np.float32),
    {"x": array_spec.ArraySpec((), np.uint8)},
)


def test_rows_come_back_as_they_were_set():
    storage = NumpyStorage(SPEC, 4)
    storage.set(2, (np.array([1, 2], np.float32), {"x": np.uint8(3)}))
    vector, rest = storage.get(2)
    np.testing.assert_array_equal(vector, [1, 2])
    assert rest["x"] == 3
    np.testing.assert_array_equal(storage.get(np.array([[0, 2]]))[1]["x"], [[0, 3]])


def test_reads_are_copies():
    storage = NumpyStorage(SPEC, 1)
    storage.get(0)[0][:] = 7
    np.testing.assert_array_equal(storage.get(0)[0], [0, 0])


def test_a_spec_that_is_no_array_spec_is_refused_by_its_path():
    with pytest.raises(ValueError, match=r"data_spec\['x'\].*ArraySpec"):
        NumpyStorage({"x": tf.TensorSpec([])}, 1)


def test_restoring_a_state_makes_the_attributes_that_were_saved(tmp_path):
    state = NumpyState()
    state.array = np.arange(3, dtype=np.uint8)
    state.scalar = np.int64(7)
    path = tf.train.Checkpoint(state=state).save(str(tmp_path / "ckpt"))
    restored = NumpyState()
    restored.array = np.zeros([3], np.uint8)
    tf.train.Checkpoint(state=restored).restore(path).assert_consumed()
    np.testing.assert_array_equal(restored.array, [0, 1, 2])
    assert restored.array.dtype == np.uint8
    assert restored.scalar == 7


def test_a_state_holds_arrays_only():
    with pytest.raises(TypeError, match=r"x: got 'text'.*NumPy"):
        NumpyState().x = "text"
