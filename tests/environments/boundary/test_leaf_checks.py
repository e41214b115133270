import numpy as np
import pytest

from tfrl.environments.boundary import leaf_checks
from tfrl.specs import array_spec


def test_arrays_are_copied_and_have_the_dtypes_of_the_spec():
    spec = {
        "a": array_spec.ArraySpec((2,), np.float32),
        "b": (array_spec.ArraySpec((), np.int64),),
    }
    given = {"a": np.ones(2, np.float32), "b": (3,)}
    found = leaf_checks.NestCopier("Maze", "observation", spec)(given)
    given["a"][0] = 7
    assert found["a"].tolist() == [1, 1]
    assert (found["b"][0].dtype, found["b"][0].shape) == (np.int64, ())


def test_an_array_of_the_specs_dtype_is_copied():
    copy = leaf_checks.NestCopier("Maze", "x", array_spec.ArraySpec((2,), np.float64))
    for given in (np.ones(2), np.ma.ones(2), memoryview(np.ones(2))):
        found = copy(given)
        assert (type(found), found.dtype) == (np.ndarray, np.float64)
        assert not np.shares_memory(found, np.asarray(given))


def test_another_structure_is_an_error():
    spec = {"a": array_spec.ArraySpec((), np.float32)}
    with pytest.raises(
        ValueError,
        match=r"^observation: got \[1.0\], another structure than the expected one, "
        ".* from environment Maze; correct",
    ):
        leaf_checks.NestCopier("Maze", "observation", spec)([1.0])
