import re
import warnings

import numpy as np
import pytest

from tfrl.environments import (
    py_environment,
)
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
    checker = time_step_checker.TimeStepChecker.of(Constant(spec, batch_size))
    return checker(ts.restart(observation, batch_size=batch_size), step)


def test_a_reward_of_shape_1_makes_a_batch_that_is_taken_off():
    spec = array_spec.ArraySpec((2,), np.float32)
    checker = time_step_checker.TimeStepChecker.of(Constant(spec))
    step = ts.termination(np.ones(2, np.float32), np.array([3.0]))
    assert step.step_type.shape == (1,)
    conformed = checker.conform(step)
    assert [np.shape(array) for array in conformed] == [(), (), (), (2,)]
    assert (conformed.step_type, conformed.reward, conformed.discount) == (2, 3, 0)
    with pytest.raises(ValueError, match=r"observation: got shape \(1,\)"):
        checker.conform(step._replace(observation=np.ones(1, np.float32)))


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
        ValueError, match=r"dtype float64 with 0\.5, expected an array of dtype int"
    ):
        check(array_spec.ArraySpec((), np.int32), 0.5)
    with pytest.raises(
        ValueError, match="dtype int64 with 300, expected an array of dtype uint8"
    ):
        check(array_spec.ArraySpec((), np.uint8), 300)


def test_infinity_is_refused_also_where_the_spec_has_no_bound():
    spec = array_spec.BoundedArraySpec((2,), np.float32, [0.0, -np.inf], [np.inf, 1.0])
    with pytest.raises(ValueError, match=r"got inf at index \[0\], expected a finite"):
        check(spec, np.array([np.inf, 0.0], np.float32))
    with pytest.raises(ValueError, match=r"got -inf at index \[1\], expected a finite"):
        check(spec, np.array([0.0, -np.inf], np.float32))
    with pytest.raises(ValueError, match="observation: got inf, expected a finite"):
        check(array_spec.ArraySpec((), np.float32), np.float32(np.inf))


def test_a_number_that_is_infinite_in_float32_is_refused():
    numbers = np.array([1e38, -1e39])
    with pytest.raises(
        ValueError,
        match=r"got -1e\+39 at index \[1\] \(infinite in float32\), expected",
    ):
        check(array_spec.ArraySpec((2,), np.float64), numbers)
    check(array_spec.ArraySpec((2,), np.float64), numbers / 10)


@pytest.mark.parametrize("reward", [np.inf, -np.inf, 1e300, np.float64(1e39), np.nan])
# NumPy's of overflows; not of sockets that other tests have left open.
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rewards_and_discounts_are_finite_in_float32(reward):
    spec = array_spec.ArraySpec((), np.float32)
    checker = time_step_checker.TimeStepChecker.of(Constant(spec))
    time_step = ts.restart(np.float32(0))
    with pytest.raises(ValueError, match=r"^reward: got .*, expected a finite number"):
        checker(time_step._replace(reward=reward), 1)
    with pytest.raises(ValueError, match=r"^discount: got .*, expected a finite"):
        checker(time_step._replace(discount=reward), 1)


@pytest.mark.parametrize("reward", [None, "1", "abc", 1j])
def test_rewards_that_are_not_numbers_are_refused(reward):
    spec = array_spec.ArraySpec((), np.float32)
    checker = time_step_checker.TimeStepChecker.of(Constant(spec))
    with pytest.raises(
        ValueError, match=r"^reward: got .*, expected an array of dtype"
    ):
        checker(ts.restart(np.float32(0))._replace(reward=reward), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("batch_size", [None, 2])
def test_the_first_observation_out_of_bounds_makes_one_warning(dtype, batch_size):
    spec = array_spec.BoundedArraySpec((3,), dtype, 1, [5, 6, 7])
    checker = time_step_checker.TimeStepChecker.of(Constant(spec, batch_size))
    shape = (3,) if batch_size is None else (batch_size, 3)

    def observe(last):
        observation = np.ones(shape, dtype)
        observation[..., -1] = last
        return ts.restart(observation, batch_size=batch_size)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker(observe(1), 1)
        checker(observe(7), 2)
    index = [2] if batch_size is None else [0, 2]
    with pytest.warns(
        RuntimeWarning,
        match=rf"^observation: got 8(\.0)? at index {re.escape(str(index))}, expected "
        r"a number in \[1(\.0)?, 7(\.0)?\].* from environment Constant at step 3; ",
    ):
        checker(observe(8), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flat = checker(observe(0), 4)
    assert flat[3].reshape(-1, 3)[0].tolist() == [1, 1, 0]


def test_a_discount_above_1_makes_a_warning():
    checker = time_step_checker.TimeStepChecker.of(
        Constant(array_spec.ArraySpec((), np.float32))
    )
    with pytest.warns(RuntimeWarning, match=r"^discount: got 2.0, .*\[0.0, 1.0\]"):
        checker(ts.restart(np.float32(0))._replace(discount=2.0), 1)


def test_bounds_are_checked_at_every_16th_step_after_the_first_thousand():
    spec = array_spec.BoundedArraySpec((1,), np.float32, 0, 1)
    outside = ts.restart(np.array([2], np.float32))
    checker = time_step_checker.TimeStepChecker.of(Constant(spec))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(1009, 1024):
            checker(outside, step)
    with pytest.warns(RuntimeWarning, match="at step 1024"):
        checker(outside, 1024)


def test_bounds_at_the_limits_of_their_dtype_are_no_bounds():
    spec = array_spec.BoundedArraySpec((2,), np.float32, [-np.inf, 0.0], np.inf)
    largest = np.finfo(np.float32).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(spec, np.array([-largest, largest], np.float32))
    with pytest.warns(RuntimeWarning, match=r"got -1.0 at index \[1\]"):
        check(spec, np.array([-largest, -1.0], np.float32))


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
    with pytest.raises(ValueError, match=r"observation: got .*another structure than"):
        check(spec, {"a": (1,)})


def test_a_batch_of_another_size_is_an_error():
    spec = array_spec.ArraySpec((2,), np.float32)
    with pytest.raises(ValueError, match=r"got shape \(2, 2\), expected \(3, 2\)"):
        check(spec, np.zeros((2, 2), np.float32), batch_size=3)
