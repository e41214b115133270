"""Time steps: constructors, predicates, specs, and no TensorFlow at import."""

import subprocess
import sys

import dm_env
import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts


def assert_scalar(array, value, dtype=np.float32):
    assert isinstance(array, np.ndarray)
    assert array.shape == ()
    assert array.dtype == dtype
    assert array == value


def test_import_does_not_load_tensorflow():
    code = (
        "import sys; from tfrl.trajectories import time_step, policy_step; "
        "import numpy as np; time_step.transition(np.zeros(3), 1.0); "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_fields_are_in_the_order_of_dm_env():
    assert ts.TimeStep._fields == dm_env.TimeStep._fields


def test_prints_each_field_on_its_line():
    assert repr(ts.restart(np.array([0], np.int32))) == (
        "TimeStep(\n"
        "{'step_type': array(0, dtype=int32),\n"
        " 'reward': array(0., dtype=float32),\n"
        " 'discount': array(1., dtype=float32),\n"
        " 'observation': array([0], dtype=int32)})"
    )


def test_step_type_from_value_is_the_constant():
    assert ts.StepType(1) is ts.StepType.MID
    assert ts.StepType.LAST.dtype == np.int32


def test_unknown_step_type_is_an_error_that_names_the_values():
    with pytest.raises(ValueError, match=r"got 3, expected 0 \(FIRST\)"):
        ts.StepType(3)


def test_step_type_constants_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        ts.restart(np.zeros(2)).step_type[...] = 2


def test_restart_has_reward_zero_and_discount_one():
    step = ts.restart(np.zeros(2))
    assert_scalar(step.step_type, 0, np.int32)
    assert_scalar(step.reward, 0)
    assert_scalar(step.discount, 1)


def test_batched_restart_of_arrays():
    step = ts.restart(np.zeros((3, 2)), batch_size=3)
    np.testing.assert_array_equal(step.step_type, [0, 0, 0])
    np.testing.assert_array_equal(step.reward, [0, 0, 0])
    np.testing.assert_array_equal(step.discount, [1, 1, 1])


def test_restart_follows_a_nested_reward_spec():
    spec = {
        "a": array_spec.ArraySpec((), np.float32),
        "b": array_spec.ArraySpec((2,), np.float64),
    }
    step = ts.restart(np.zeros((3, 2)), batch_size=3, reward_spec=spec)
    assert step.reward["a"].shape == (3,)
    assert step.reward["b"].shape == (3, 2)
    assert step.reward["b"].dtype == np.float64


@pytest.mark.parametrize("batch_size", [3, tf.constant(3), [3], tf.constant([3])])
def test_batched_restart_of_tensors(batch_size):
    spec = tf.TensorSpec([2], tf.float64)
    step = ts.restart(tf.zeros([3, 4]), batch_size, reward_spec=spec)
    assert step.step_type.shape == (3,)
    assert step.reward.shape == (3, 2)
    assert step.reward.dtype == tf.float64
    np.testing.assert_array_equal(step.discount, [1, 1, 1])


def test_transition_of_numbers_is_float32_arrays():
    step = ts.transition(np.zeros(2), 2.0, 0.5)
    assert_scalar(step.step_type, 1, np.int32)
    assert_scalar(step.reward, 2)
    assert_scalar(step.discount, 0.5)


def test_scalar_discount_is_broadcast_for_tensors_and_kept_for_arrays():
    rewards = [1.0, 2.0, 3.0]
    tensors = ts.transition(tf.zeros([3, 2]), tf.constant(rewards))
    arrays = ts.transition(np.zeros((3, 2)), np.array(rewards))
    np.testing.assert_array_equal(tensors.discount, [1, 1, 1])
    assert_scalar(arrays.discount, 1)
    np.testing.assert_array_equal(arrays.step_type, [1, 1, 1])


def test_vector_reward_takes_its_outer_shape_from_outer_dims():
    step = ts.transition(tf.zeros([4]), tf.constant([1.0, 2.0]), outer_dims=())
    assert step.step_type.shape == ()
    array_step = ts.transition(np.zeros(4), np.array([1.0, 2.0]), outer_dims=())
    assert array_step.step_type.shape == ()


def test_numbers_beside_tensor_observations_become_float32():
    step = ts.transition(tf.zeros([4]), np.float64(2.0))
    assert step.reward.dtype == tf.float32


def test_termination_has_discount_zero():
    assert_scalar(ts.termination(np.zeros(2), 1.0).discount, 0)
    batched = ts.termination(np.zeros((2, 1)), np.ones(2))
    np.testing.assert_array_equal(batched.discount, [0, 0])
    np.testing.assert_array_equal(batched.step_type, [2, 2])
    tensors = ts.termination(tf.zeros([2, 1]), tf.ones([2]))
    np.testing.assert_array_equal(tensors.discount, [0, 0])


def test_truncation_is_last_and_keeps_the_discount():
    step = ts.truncation(np.zeros(2), 1.0)
    assert step.is_last()
    assert_scalar(step.discount, 1)
    tensors = ts.truncation(tf.zeros([2, 1]), tf.ones([2]), 0.9)
    np.testing.assert_allclose(tensors.discount, [0.9, 0.9], rtol=1e-6)
    np.testing.assert_array_equal(tensors.step_type, [2, 2])


def test_nan_reward_is_an_error_that_names_the_field():
    with pytest.raises(ValueError, match=r"time_step\.reward: got None.*finite"):
        ts.transition(np.zeros(2), None)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, np.array([0.0, -np.inf])])
@pytest.mark.parametrize("make", [ts.transition, ts.truncation])
@pytest.mark.filterwarnings("error")
def test_rewards_and_discounts_are_finite_in_float32(make, value):
    with pytest.raises(ValueError, match=r"time_step\.reward: got .*finite"):
        make(np.zeros(2), value)
    with pytest.raises(ValueError, match=r"time_step\.discount: got .*finite"):
        make(np.zeros(2), 1.0, value)


def test_a_reward_that_is_a_string_is_an_error():
    with pytest.raises(ValueError, match=r"time_step\.reward: got '1' of type str"):
        ts.transition(np.zeros(2), "1")


def test_constructors_keep_the_static_shape_inside_a_graph():
    @tf.function(input_signature=[tf.TensorSpec([3]), tf.TensorSpec([None])])
    def step_types(static, dynamic):
        known = ts.transition(static, static)
        unknown = ts.transition(dynamic, dynamic)
        assert known.step_type.shape == (3,)
        return unknown.step_type

    np.testing.assert_array_equal(step_types(tf.zeros([3]), tf.zeros([2])), [1, 1])


def test_predicates_of_arrays_are_numpy_and_of_tensors_tensors():
    arrays = ts.TimeStep(np.array([0, 1, 2]), (), (), ())
    np.testing.assert_array_equal(arrays.is_first(), [True, False, False])
    np.testing.assert_array_equal(arrays.is_mid(), [False, True, False])
    tensors = ts.TimeStep(tf.constant([0, 1, 2]), (), (), ())
    assert tf.is_tensor(tensors.is_last())
    np.testing.assert_array_equal(tensors.is_last(), [False, False, True])


def test_spec_of_array_observations():
    observation = {"x": array_spec.ArraySpec((2,), np.float32)}
    spec = ts.time_step_spec(observation)
    assert type(spec.reward) is array_spec.ArraySpec
    assert isinstance(spec.discount, array_spec.BoundedArraySpec)
    assert (spec.discount.minimum, spec.discount.maximum) == (0, 1)
    assert spec.step_type.dtype == np.int32
    names = spec.step_type.name, spec.reward.name, spec.discount.name
    assert names == ("step_type", "reward", "discount")
    assert spec.observation is observation


def test_spec_of_tensor_observations():
    spec = ts.time_step_spec(tf.TensorSpec([2], tf.float32))
    assert isinstance(spec.reward, tf.TensorSpec)
    assert isinstance(spec.discount, tensor_spec.BoundedTensorSpec)
    assert spec.step_type == tf.TensorSpec([], tf.int32, name="step_type")


def test_spec_of_nothing_is_empty():
    assert ts.time_step_spec() == ((), (), (), ())


def test_spec_keeps_the_given_reward_spec():
    reward = [tf.TensorSpec([3], tf.float32)]
    assert ts.time_step_spec(tf.TensorSpec([2]), reward).reward is reward


def test_mixed_kinds_of_specs_are_an_error():
    with pytest.raises(TypeError, match="both be array specs or both be tensor specs"):
        ts.time_step_spec(
            array_spec.ArraySpec((2,), np.float32), tf.TensorSpec([], tf.float32)
        )
