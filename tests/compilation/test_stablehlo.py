import gc

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import stablehlo, vectorized_map_converters

TEXT = """module {{
  func.func public @main(%a: tensor<{0}x2xf32>, %b: tensor<{0}xi32>)
      -> (tensor<{0}x2xf32>, tensor<{0}xi32>) {{
    %0 = stablehlo.add %a, %a : tensor<{0}x2xf32>
    %1 = stablehlo.multiply %b, %b : tensor<{0}xi32>
    return %0, %1 : tensor<{0}x2xf32>, tensor<{0}xi32>
  }}
}}"""


def program(members, platform="cpu"):
    """Doubles floats and squares integers."""
    outputs = tf.TensorSpec([members, 2], tf.float32), tf.TensorSpec([members], "int32")
    return stablehlo.Program(TEXT.format(members), outputs)


def inputs(*shape):
    a = np.arange(2 * np.prod(shape), dtype=np.float32).reshape(*shape, 2)
    b = np.arange(np.prod(shape), dtype=np.int32).reshape(*shape)
    return a, b


@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_a_function_computes_as_its_program_says(jit_compile):
    function = stablehlo.Function(program)
    call = function
    if jit_compile is not None:
        call = tf.function(function, autograph=False, jit_compile=jit_compile)
    a, b = inputs(3)
    doubled, squared = call(tf.constant(a), tf.constant(b))
    np.testing.assert_array_equal(doubled, a + a)
    np.testing.assert_array_equal(squared, b * b)


def test_a_program_is_lowered_once_for_a_number_of_members():
    lowered = []

    def lower(members, platform):
        lowered.append((members, platform))
        return program(members)

    function = stablehlo.Function(lower)
    for number in (3, 4, 3):
        function(*map(tf.constant, inputs(number)))
    assert [members for members, _ in lowered] == [3, 4]


def test_copies_in_a_vectorized_map_are_members_of_one_call():
    lowered = []

    def lower(members, platform):
        lowered.append(members)
        return program(members)

    function = stablehlo.Function(lower)

    @tf.function(autograph=False, jit_compile=True)
    def many(a, b):
        with vectorized_map_converters.conversions():
            return tf.vectorized_map(lambda x: function(*x), (a, b))

    a, b = inputs(5, 3)
    doubled, squared = many(tf.constant(a), tf.constant(b))
    np.testing.assert_array_equal(doubled, a + a)
    np.testing.assert_array_equal(squared, b * b)
    assert lowered[-1] == 15


def test_a_vectorized_map_knows_only_functions_of_members():
    function = stablehlo.Function(program)

    @tf.function(autograph=False)
    def many(a, b):
        nonlocal function
        with vectorized_map_converters.conversions():

            def call(x):
                nonlocal function
                results = function(*x)
                function = None
                gc.collect()
                return results

            return tf.vectorized_map(call, (a, b), fallback_to_while_loop=False)

    with pytest.raises(ValueError, match="got a program in StableHLO of a library of"):
        many(*map(tf.constant, inputs(5, 3)))


def test_no_gradient_flows_through_a_call():
    function = stablehlo.Function(program)
    a, b = map(tf.constant, inputs(3))
    with tf.GradientTape() as tape:
        tape.watch(a)
        doubled, _ = function(a, b)
    assert tape.gradient(doubled, a) is None


def test_custom_calls_are_listed_unless_xla_knows_them():
    text = """
      %0 = stablehlo.custom_call @Sharding(%a) : (f32) -> f32
      %1 = stablehlo.custom_call @lapack_spotrf_ffi(%0) : (f32) -> f32
      %2 = "stablehlo.custom_call"(%1) {call_target_name = "other.call"}
    """
    assert stablehlo.unknown_calls(text) == ["lapack_spotrf_ffi", "other.call"]
    assert stablehlo.unknown_calls(TEXT) == []


@pytest.mark.parametrize("as_bits", [False, True])
def test_long_constants_of_bools_may_have_a_byte_for_each(as_bits):
    expected = np.random.default_rng(0).random([13, 13]) < 0.5
    stored = np.packbits(expected, bitorder="little") if as_bits else expected
    text = f"""module {{
      func.func public @main(%a: tensor<3xf32>) -> (tensor<13x13xi1>) {{
        %0 = stablehlo.constant dense<"0x{stored.tobytes().hex()}"> : tensor<13x13xi1>
        return %0 : tensor<13x13xi1>
      }}
    }}"""
    outputs = (tf.TensorSpec([13, 13], tf.bool),)
    read = stablehlo.Program(stablehlo.with_packed_bools(text), outputs)
    (found,) = stablehlo.Function(lambda *_: read)(tf.zeros(3))
    np.testing.assert_array_equal(found, expected)


def test_the_obstacle_is_tensorflows_own_error():
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs(3)]
    assert stablehlo.obstacle(program(3), specs) is None
    newer = program(3)._replace(text=TEXT.format(3).replace("multiply", "newer_op"))
    assert "newer_op" in stablehlo.obstacle(newer, specs)
