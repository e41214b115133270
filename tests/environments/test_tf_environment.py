import numpy as np
import pytest
import tensorflow as tf

from tfrl import environments
from tfrl.environments import tf_environment, tf_wrappers
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts


class Constant(tf_environment.TFEnvironment):
    def __init__(self):
        spec = ts.time_step_spec(tf.TensorSpec([2], tf.float32))
        super().__init__(spec, tf.TensorSpec([], tf.int32), batch_size=3)

    def _current_time_step(self):
        return self._reset()

    def _reset(self):
        return ts.restart(tf.zeros([3, 2]), batch_size=3)

    def _step(self, action):
        return ts.transition(tf.ones([3, 2]), tf.cast(action, tf.float32))


def test_public_methods_call_the_subclass():
    environment = Constant()
    assert environment.reset().is_first().numpy().all()
    assert environment.current_time_step().is_first().numpy().all()
    assert environment.step(tf.constant([1, 2, 3])).reward.numpy().tolist() == [1, 2, 3]


def test_specs_come_from_the_time_step_spec():
    environment = Constant()
    assert environment.observation_spec() == tf.TensorSpec([2], tf.float32)
    assert environment.reward_spec().dtype == tf.float32
    assert environment.action_spec() == tf.TensorSpec([], tf.int32)
    assert (environment.batched, environment.batch_size) == (True, 3)


def test_it_calls_no_python_unless_it_says_so():
    assert not Constant().calls_python
    python = environments.TFPyEnvironment(
        environments.RandomPyEnvironment(
            array_spec.BoundedArraySpec((), np.float32, 0, 1),
            array_spec.BoundedArraySpec((), np.int32, 0, 1),
        )
    )
    assert python.calls_python
    assert tf_wrappers.TFEnvironmentBaseWrapper(python).calls_python
    assert not tf_wrappers.TFEnvironmentBaseWrapper(Constant()).calls_python


def test_what_a_tensor_environment_has_not():
    environment = Constant()
    environment.close()
    with pytest.raises(NotImplementedError, match=r"Constant\.render"):
        environment.render()
    with pytest.raises(tf.errors.InvalidArgumentError), environment.reraise():
        tf.debugging.assert_equal(tf.constant(1), tf.constant(2))


def test_the_package_exports_what_it_lists():
    for name in environments.__all__:
        assert getattr(environments, name) is not None


SPEC = {
    "choice": tensor_spec.BoundedTensorSpec((), tf.int32, 0, 3),
    "force": tensor_spec.TensorSpec((2,), tf.float32),
}


def test_tensors_come_in_the_order_and_dtypes_of_the_specs():
    choice, force = tf_environment.flatten(
        {"force": [[0.5, 1.5]], "choice": tf.constant([2], tf.int64)}, SPEC, 1
    )
    assert (choice.numpy().tolist(), choice.dtype) == ([2], tf.int32)
    assert (force.numpy().tolist(), force.dtype) == ([[0.5, 1.5]], tf.float32)


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ({"choice": [0]}, ValueError, r"action: got .*expected the structure of the a"),
        (
            {"choice": [1, 1], "force": [[0.0, 0.0]]},
            ValueError,
            r"action/choice: got shape \(2,\), expected \(1,\)",
        ),
        (
            {"choice": ["up"], "force": [[0.0, 0.0]]},
            TypeError,
            "action/choice: got dtype string, expected int32",
        ),
        (
            {"choice": [0], "force": [0.0, 0.0]},
            ValueError,
            r"action/force: got shape \(2,\), expected \(1, 2\); .* batch in fr",
        ),
        (
            {"choice": [0.5], "force": [[0.0, 0.0]]},
            TypeError,
            "action/choice: got dtype float32, expected int32; cast the action",
        ),
    ],
)
def test_what_breaks_the_specs_is_named(action, error, message):
    with pytest.raises(error, match=message):
        tf_environment.flatten(action, SPEC, 1)
