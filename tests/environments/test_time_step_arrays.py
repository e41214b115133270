import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import words
from tfrl.environments import random_py_environment, tf_py_environment
from tfrl.environments.boundary import time_step_checker
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATIONS = {
    "position": array_spec.BoundedArraySpec((2,), np.float32, -1, 1),
    "wide": array_spec.BoundedArraySpec((1,), np.float64, -1, 1),
    "lamp": array_spec.BoundedArraySpec((3,), np.bool_, False, True),
}
ACTIONS = array_spec.BoundedArraySpec((), np.int32, 0, 1)


@pytest.fixture
def arrays():
    environment = random_py_environment.RandomPyEnvironment(OBSERVATIONS, ACTIONS)
    checker = time_step_checker.TimeStepChecker.of(environment)
    specs = tf.nest.flatten(tensor_spec.from_spec(environment.time_step_spec()))
    layout = words.WordLayout(tensor_spec.add_outer_dim(specs, 1), pads=True)
    return tf_py_environment.TimeStepArrays(checker, layout)


def time_step(position=0.5, wide=0.25, reward=2.0, discount=0.5):
    observation = {
        "position": np.array([position, 0], np.float32),
        "wide": np.array([wide]),
        "lamp": np.array([True, False, True]),
    }
    reward, discount = np.float32(reward), np.float32(discount)
    return ts.TimeStep(ts.StepType.MID, reward, discount, observation)


def test_the_latest_time_step_is_held_with_a_batch_in_front(arrays):
    assert not arrays.is_set
    arrays.update(time_step(0.75), 1)
    arrays.update(time_step(), 2)
    assert arrays.is_set
    values = [array.tolist() for array in arrays.copies()]
    lamp, position, wide = [[True, False, True]], [[0.5, 0.0]], [[0.25]]
    assert values == [[1], [2.0], [0.5], lamp, position, wide]


def test_copies_do_not_change_and_can_be_set(arrays):
    arrays.update(time_step(0.75), 1)
    copies = arrays.copies()
    for step in (2, 3):
        arrays.update(time_step(), step)
    assert copies[4].tolist() == [[0.75, 0.0]]
    arrays.set(copies)
    assert arrays.copies()[4].tolist() == [[0.75, 0.0]]
    arrays.set(None)
    assert not arrays.is_set


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"position": np.nan}, r"^observation/position: got NaN at index \[0\], expec"),
        ({"wide": 1e39}, r"^observation/wide: got 1e\+39 at index \[0\] \(infinite"),
        ({"reward": np.inf}, "^reward: got inf, expected a finite number"),
    ],
)
def test_a_broken_time_step_leaves_the_one_before(arrays, broken, message):
    arrays.update(time_step(), 1)
    with pytest.raises(ValueError, match=message):
        arrays.update(time_step(**broken), 2)
    assert arrays.copies()[4].tolist() == [[0.5, 0.0]]


def test_arrays_of_another_time_step_are_not_restored(arrays):
    arrays.update(time_step(), 1)
    with pytest.raises(ValueError, match="shorter"):
        arrays.set(arrays.copies()[:3])
