"""`TFCountingEnvironment`: what it documents, and the conformance suite."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.environments.tf_py_environment import TFPyEnvironment
from tfrl.specs.tensor_spec import BoundedTensorSpec


class TestTFCounting(testing.TFEnvironmentConformance):
    def make_environment(self):
        return testing.TFCountingEnvironment([[1, 2], [3, 4]])


def test_tf_counting_has_the_lengths_of_each_member_and_episode():
    environment = testing.TFCountingEnvironment([[1, 2], [3, 3]])
    steps = [environment.reset()]
    for _ in range(5):
        steps.append(environment.step(tf.constant([0, 1])))
    counts = [step.observation.numpy().tolist() for step in steps]
    assert counts == [[0, 0], [1, 1], [0, 2], [1, 3], [2, 0], [0, 1]]
    types = [step.step_type.numpy().tolist() for step in steps]
    assert types == [[0, 0], [2, 1], [0, 1], [1, 2], [2, 0], [0, 1]]
    assert [step.reward.numpy().tolist() for step in steps] == counts
    assert steps[3].discount.numpy().tolist() == [1, 0]
    assert int(environment.num_resets) == 1


def test_tf_counting_rewards_as_asked_and_restores_its_state():
    environment = testing.TFCountingEnvironment(
        [3],
        action_spec=BoundedTensorSpec([], tf.int32, 0, 9),
        reward=lambda count, action: 10 * count + action,
    )
    environment.reset()
    assert environment.step(tf.constant([7])).reward.numpy().tolist() == [17]
    state = environment.get_state()
    environment.step(tf.constant([1]))
    environment.set_state(state)
    assert environment.current_time_step().reward.numpy().tolist() == [17]


def test_python_and_tensorflow_count_alike():
    python = TFPyEnvironment(testing.CountingEnvironment(2))
    tensors = testing.TFCountingEnvironment([2])
    python.reset(), tensors.reset()
    for _ in range(5):
        for ours, theirs in zip(
            python.step(tf.constant([1])), tensors.step(tf.constant([1])), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_episodes_without_steps_are_refused():
    with pytest.raises(ValueError, match="length: got 0, expected at least 1 step"):
        testing.TFCountingEnvironment([2, 0])
