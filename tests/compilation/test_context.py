"""How code finds out which program it is traced for."""

import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.compilation import context


def compiled(function):
    return tf.function(function, jit_compile=True, autograph=False)


def test_whether_xla_compiles_the_graph():
    assert not context.in_xla_graph()
    seen = []

    def look():
        seen.append(context.in_xla_graph())
        tf.function(lambda: seen.append(context.in_xla_graph()))()
        tf.cond(tf.constant(True), look_inside, look_inside)

    def look_inside():
        seen.append(context.in_xla_graph())

    tf.function(look, autograph=False).get_concrete_function()
    assert not any(seen)
    seen.clear()
    compiled(look).get_concrete_function()
    assert len(seen) == 4
    assert all(seen)


@pytest.mark.parametrize("as_function", [False, True], ids=["eager", "graph"])
def test_an_assertion_fails_with_its_data(as_function):
    def check(value):
        with tf.control_dependencies([context.assert_true(value > 0, ["got", value])]):
            return tf.identity(value)

    check = tf.function(check) if as_function else check
    assert int(check(tf.constant(1))) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"got.*-1"):
        check(tf.constant(-1))


def test_there_are_no_assertions_in_a_compiled_program():
    @compiled
    def check(value):
        with tf.control_dependencies([context.assert_true(value > 0, ["got", value])]):
            return context.assert_finite(value, "not finite")

    assert float(check(tf.constant(float("-inf")))) == float("-inf")


def test_numbers_that_are_not_finite_are_found():
    check = tf.function(lambda x: context.assert_finite(x, "the loss is bad"))
    assert float(check(tf.constant(1.0))) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="the loss is bad"):
        check(tf.constant(float("nan")))


def test_classes_of_the_package_are_told_from_others(monkeypatch):
    assert context.is_of_this_package(dqn_agent.DqnAgent)
    assert not context.is_of_this_package(tf.Module)
    # A copy of the package under another name.
    monkeypatch.setattr(context, "_PACKAGE", "vendor.tfrl")
    assert not context.is_of_this_package(dqn_agent.DqnAgent)
    copy = type("Copy", (), {"__module__": "vendor.tfrl.agents"})
    assert context.is_of_this_package(copy)
