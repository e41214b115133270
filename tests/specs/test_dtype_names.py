import ml_dtypes
import numpy as np
import pytest

from tfrl.specs import dtype_names


@pytest.mark.parametrize(
    "dtype", [np.bool_, "i2", np.dtype(np.float32), complex, ml_dtypes.bfloat16]
)
def test_names_name_their_dtypes(dtype):
    name = dtype_names.dtype_name(dtype)
    assert name == np.dtype(dtype).name
    assert dtype_names.dtype_from_name(name) == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [object, "U3", ">f4", "M8[s]", "V8"])
def test_dtypes_of_other_things_than_numbers_are_refused(dtype):
    with pytest.raises(ValueError, match="only numbers and booleans of a fixed size"):
        dtype_names.dtype_name(dtype)


@pytest.mark.parametrize("name", ["object", "i4", "<f4", "finfo", "__name__", "(2,)f4"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=r"no dtype|only numbers"):
        dtype_names.dtype_from_name(name)
