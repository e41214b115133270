import numpy as np
import pytest

from tfrl.environments.gymnasium import observations
from tfrl.specs import array_spec


def test_arrays_are_copied_and_have_the_dtypes_of_the_spec():
    spec = {
        "a": array_spec.ArraySpec((2,), np.float32),
        "b": (array_spec.ArraySpec((), np.int64),),
    }
    given = {"a": np.ones(2, np.float32), "b": (3,)}
    found = observations.to_spec(given, spec)
    given["a"][0] = 7
    assert found["a"].tolist() == [1, 1]
    assert (found["b"][0].dtype, found["b"][0].shape) == (np.int64, ())


def test_another_structure_is_an_error():
    spec = {"a": array_spec.ArraySpec((), np.float32)}
    with pytest.raises((TypeError, ValueError)):
        observations.to_spec([1.0], spec)
