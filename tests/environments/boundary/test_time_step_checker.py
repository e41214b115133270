from unittest import mock

import numpy as np
import pytest

from tfrl.environments import py_environment, wrappers
from tfrl.environments.boundary import time_step_checker
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class Constant(py_environment.PyEnvironment):
    """Has any observation spec, and never steps."""

    def __init__(self, observation_spec, batch_size=None):
        super().__init__()
        self._observation_spec = observation_spec
        self._batch_size = batch_size

    @property
    def batched(self):
        return self._batch_size is not None

    @property
    def batch_size(self):
        return self._batch_size

    def observation_spec(self):
        return self._observation_spec

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1)

    def _reset(self):
        raise NotImplementedError

    def _step(self, action):
        raise NotImplementedError


def check(spec, observation, batch_size=None, step=7):
    checker = time_step_checker.TimeStepChecker(Constant(spec, batch_size))
    return checker(ts.restart(observation, batch_size=batch_size), step)


def test_unbatched_steps_get_a_batch_of_one():
    flat = check(array_spec.ArraySpec((2,), np.float32), np.ones(2, np.float32))
    assert [array.shape for array in flat] == [(1,), (1,), (1,), (1, 2)]
    assert [array.dtype for array in flat] == [np.int32] + [np.float32] * 3


def test_arrays_are_copies():
    observation = np.ones((3, 2), np.float32)
    flat = check(array_spec.ArraySpec((2,), np.float32), observation, batch_size=3)
    observation[:] = 5.0
    assert flat[3].tolist() == [[1.0, 1.0]] * 3


def test_numbers_without_a_dtype_get_the_specs():
    assert check(array_spec.ArraySpec((), np.uint8), 3)[3].dtype == np.uint8
    assert check(array_spec.ArraySpec((2,), np.float32), [1, 2])[3].dtype == np.float32
    with pytest.raises(
        ValueError, match="dtype float64, expected an array of dtype int"
    ):
        check(array_spec.ArraySpec((), np.int32), 0.5)
    with pytest.raises(
        ValueError, match="dtype int64, expected an array of dtype uint8"
    ):
        check(array_spec.ArraySpec((), np.uint8), 300)


def test_infinity_passes_where_the_spec_has_no_bound():
    spec = array_spec.BoundedArraySpec((2,), np.float32, [0.0, -np.inf], [np.inf, 1.0])
    check(spec, np.array([np.inf, -np.inf], np.float32))
    check(array_spec.ArraySpec((), np.float32), np.float32(np.inf))
    with pytest.raises(ValueError, match=r"got -inf at index \[0\]"):
        check(spec, np.array([-np.inf, 0.0], np.float32))
    with pytest.raises(ValueError, match=r"got inf at index \[1\]"):
        check(spec, np.array([0.0, np.inf], np.float32))


def test_large_finite_numbers_pass():
    spec = array_spec.ArraySpec((2,), np.float32)
    check(spec, np.array([1e30, -1e30], np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_is_found_in_every_dtype_and_names_the_member(dtype):
    observation = np.zeros((3, 2), dtype)
    observation[2, 1] = np.nan
    with pytest.raises(
        ValueError, match=r"^observation: got NaN at index \[2, 1\].*Constant at step 7"
    ):
        check(array_spec.ArraySpec((2,), dtype), observation, batch_size=3)


def test_fields_in_a_nest_are_named_by_their_path():
    spec = {"a": (array_spec.ArraySpec((), np.int32),), "b": ()}
    check(spec, {"a": (1,), "b": ()})
    with pytest.raises(ValueError, match=r"observation/a/0: got shape \(1,\)"):
        check(spec, {"a": (np.zeros(1, np.int32),), "b": ()})
    with pytest.raises(ValueError, match="observation: got another structure than"):
        check(spec, {"a": (1,)})


def test_a_batch_of_another_size_is_an_error():
    spec = array_spec.ArraySpec((2,), np.float32)
    with pytest.raises(ValueError, match=r"got shape \(2, 2\), expected \(3, 2\)"):
        check(spec, np.zeros((2, 2), np.float32), batch_size=3)


def test_an_environment_is_called_by_its_class_inside_of_wrappers():
    environment = Constant(array_spec.ArraySpec((), np.float32))
    wrapped = wrappers.RunStats(wrappers.TimeLimit(environment, 3))
    assert time_step_checker.environment_name(wrapped) == "Constant"


def test_a_mock_is_called_by_its_class():
    # Each wrapped_env() of a mock returns another mock.
    assert time_step_checker.environment_name(mock.MagicMock()) == "MagicMock"
