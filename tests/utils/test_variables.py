"""Variables of two networks: copied, mixed, compared."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import sequential
from tfrl.utils import variables as variables_lib

SPEC = tf.TensorSpec([2], tf.float32)


def net(*layers, name=None, spec=SPEC):
    layers = layers or (keras.layers.Dense(3), keras.layers.Dense(1))
    result = sequential.Sequential(list(layers), input_spec=spec, name=name)
    result.create_variables()
    return result


def numbers(*values, trainable=True):
    return [tf.Variable(float(v), trainable=trainable) for v in values]


def values(variables):
    return [float(v.numpy()) for v in variables]


# --- Both kinds of variables.


def test_tf_variable_is_found_behind_a_keras_one():
    of_keras, of_tf = keras.Variable(1.0), tf.Variable(2.0)
    assert variables_lib.as_tf_variable(of_keras) is of_keras.value
    assert variables_lib.as_tf_variable(of_tf) is of_tf


def test_each_variable_is_listed_once_in_order():
    a, b = keras.Variable(1.0), tf.Variable(2.0)
    result = variables_lib.as_tf_variables(iter([b, a, b, a.value]))
    assert [id(v) for v in result] == [id(b), id(a.value)]


def test_create_variable():
    counter = variables_lib.create_variable("counter")
    assert (counter.dtype, counter.shape, counter.trainable) == (tf.int64, [], False)
    assert counter.name == "counter:0"
    filled = variables_lib.create_variable("f", 0.5, [2, 3], tf.float32, trainable=True)
    np.testing.assert_array_equal(filled, np.full([2, 3], 0.5))
    assert filled.trainable


def test_create_variable_of_its_initial_values_shape():
    variable = variables_lib.create_variable("v", [1, 2], shape=None)
    assert variable.shape == [2]
    assert variable.numpy().tolist() == [1, 2]


def test_create_variable_from_an_initializer():
    variable = variables_lib.create_variable(
        "v", shape=[3], dtype=tf.float32, initializer=tf.ones_initializer()
    )
    np.testing.assert_array_equal(variable, np.ones(3))
    of_value = variables_lib.create_variable("v", dtype=tf.int32, initializer=[1, 2])
    np.testing.assert_array_equal(of_value, [1, 2])


def test_create_variable_takes_what_meant_something_to_tensorflow_1():
    variable = variables_lib.create_variable(
        "v", 1, (), tf.int32, False, True, unique_name=False
    )
    assert variable.trainable


# --- Soft updates.


@pytest.mark.parametrize(
    ("tau", "expected"), [(0.0, [1, 2]), (0.25, [3.25, 6.5]), (1.0, [10, 20])]
)
@pytest.mark.parametrize("convert", [float, np.float32, tf.constant, tf.Variable])
def test_update_moves_the_target_by_tau(tau, expected, convert):
    source, target = numbers(10, 20), numbers(1, 2)
    variables_lib.soft_variables_update(source, target, convert(tau))
    np.testing.assert_allclose(values(target), expected, rtol=1e-6)
    assert values(source) == [10, 20]


def test_update_copies_by_default_and_takes_iterators():
    source, target = numbers(10, 20), numbers(1, 2)
    variables_lib.soft_variables_update(iter(source), iter(target))
    assert values(target) == [10, 20]


@pytest.mark.parametrize(("fixed_tau", "expected"), [(1.0, 10), (0.0, 1), (None, 5.5)])
def test_variables_that_are_not_trainable_have_a_tau_of_their_own(fixed_tau, expected):
    source = [*numbers(10), *numbers(10, trainable=False)]
    target = [*numbers(1), *numbers(1, trainable=False)]
    variables_lib.soft_variables_update(source, target, 0.5, fixed_tau)
    assert values(target) == [5.5, expected]


def test_update_of_keras_variables():
    source, target = [keras.Variable(10.0)], [keras.Variable(1.0)]
    variables_lib.soft_variables_update(source, target, 0.5)
    assert values(target) == [5.5]


def test_update_of_integers_copies():
    source, target = [tf.Variable(7)], [tf.Variable(3)]
    variables_lib.soft_variables_update(source, target)
    assert target[0] == 7


def test_update_pairs_by_name_if_asked_to():
    source = [tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")]
    target = [tf.Variable(0.0, name="b"), tf.Variable(0.0, name="a")]
    variables_lib.soft_variables_update(source, target, sort_variables_by_name=True)
    assert values(target) == [2, 1]


@pytest.mark.parametrize("argument", ["tau", "tau_non_trainable"])
@pytest.mark.parametrize("tau", [-0.1, 1.1, 2.0, np.float32(1.5)])
def test_tau_outside_of_zero_and_one(argument, tau):
    with pytest.raises(ValueError, match=rf"{argument}: .* \[0, 1\], got {tau}; 0 kee"):
        variables_lib.soft_variables_update([], [], **{argument: tau})


def test_lists_of_different_lengths():
    with pytest.raises(
        ValueError, match="expected lists of the same length, got 2 and 1; pass the var"
    ):
        variables_lib.soft_variables_update(numbers(1, 2), numbers(1))


# --- Comparing networks.


def test_shared_variables_are_found_by_identity():
    some, others = net(), net()
    shared = net(some.layers[0], keras.layers.Dense(1))
    assert (
        variables_lib.extract_shared_variables(some.variables, others.variables) == []
    )
    found = variables_lib.extract_shared_variables(some.variables, shared.variables)
    assert [id(v) for v in found] == [id(v) for v in some.variables[:2]]
    # A Keras variable and the tf.Variable behind it are one.
    behind = [v.value for v in some.variables]
    assert len(variables_lib.extract_shared_variables(some.variables, behind)) == 4


def test_deduped_variables_leave_out_those_of_others():
    some = net()
    shared = net(some.layers[0], keras.layers.Dense(1))
    rest = variables_lib.deduped_network_variables(some, shared, net())
    assert [id(v) for v in rest] == [id(v) for v in some.variables[2:]]


def test_networks_that_share_a_trainable_variable():
    some = net(name="some")
    shared = net(some.layers[0], keras.layers.Dense(1), name="other")
    with pytest.raises(
        ValueError,
        match=r"networks 'some' and 'other': expected no trainable variables in common"
        r", but they share \['kernel', 'bias'\]; give each",
    ):
        variables_lib.check_no_shared_variables(some, shared)
    variables_lib.check_no_shared_variables(some, net())
    some.layers[0].trainable = False
    variables_lib.check_no_shared_variables(some, shared)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: net(keras.layers.Dense(3)), "variables of the same shapes and dtypes"),
        (
            lambda: net(keras.layers.Dense(3), keras.layers.Dense(2)),
            "variables of the same shapes and dtypes",
        ),
        (lambda: net(spec=tf.TensorSpec([3], tf.float32)), "same input_tensor_spec"),
    ],
)
def test_networks_that_do_not_match(other, message):
    variables_lib.check_matching_networks(net(), net())
    with pytest.raises(ValueError, match=f"expected .*{message}.*; build both with"):
        variables_lib.check_matching_networks(net(), other())


def test_target_is_a_built_copy_with_other_weights():
    some = net(keras.layers.Dense(3, kernel_initializer="ones"))
    target = variables_lib.maybe_copy_target_network_with_checks(some, name="Target")
    assert target.name == "Target"
    assert not variables_lib.extract_shared_variables(some.variables, target.variables)
    assert [v.shape for v in target.variables] == [v.shape for v in some.variables]


def test_target_of_the_user_is_built_and_kept():
    given = sequential.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
    result = variables_lib.maybe_copy_target_network_with_checks(
        net(), given, input_spec=SPEC
    )
    assert result is given
    assert len(given.variables) == 4


@pytest.mark.parametrize("wrong", ["shared", "shape"])
def test_target_of_the_user_is_checked(wrong):
    some = net()
    target = net(*some.layers) if wrong == "shared" else net(keras.layers.Dense(1))
    with pytest.raises(ValueError, match="networks "):
        variables_lib.maybe_copy_target_network_with_checks(some, target)
