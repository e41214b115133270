"""The counting environment of the tests in TensorFlow keeps its contract."""

import numpy as np
import tensorflow as tf

from tests.tf_counting import TFCountingEnvironment
from tfrl import testing
from tfrl.environments.tf_py_environment import TFPyEnvironment


class TestTFCounting(testing.TFEnvironmentConformance):
    def make_environment(self):
        return TFCountingEnvironment([[1, 2], [3, 4]])


def test_tf_counting_has_the_lengths_of_each_member_and_episode():
    environment = TFCountingEnvironment([[1, 2], [3, 3]])
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


def test_python_and_tensorflow_count_alike():
    python = TFPyEnvironment(testing.CountingEnvironment(2))
    tensors = TFCountingEnvironment([2])
    python.reset(), tensors.reset()
    for _ in range(5):
        for ours, theirs in zip(
            python.step(tf.constant([1])), tensors.step(tf.constant([1])), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
