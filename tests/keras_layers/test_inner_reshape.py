import numpy as np
import pytest
import tensorflow as tf

from tfrl.keras_layers import inner_reshape

InnerReshape = inner_reshape.InnerReshape


@pytest.mark.parametrize("outer", [(), (5,), (5, 7)])
@pytest.mark.parametrize(
    ("current", "new", "result"),
    [([6], [2, 3], (2, 3)), ([None], [-1, 2], (3, 2)), ([2, None], [-1], (6,))],
)
def test_inner_dimensions_are_reshaped(outer, current, new, result):
    x = np.arange(np.prod([*outer, 6])).reshape(
        [*outer, *([6], [2, 3])[len(current) - 1]]
    )
    layer = InnerReshape(current, new)
    np.testing.assert_array_equal(layer(tf.constant(x)), x.reshape([*outer, *result]))
    assert layer.compute_output_shape(x.shape) == (*outer, *result)


def test_static_shape_is_known_in_a_graph():
    layer = InnerReshape([6], [-1, 2])
    function = tf.function(layer.call, input_signature=[tf.TensorSpec([None, None, 6])])
    (output,) = function.get_concrete_function().outputs
    assert output.shape.as_list() == [None, None, 3, 2]


def test_nests_are_reshaped_tensor_by_tensor():
    outputs = InnerReshape([], [1])({"a": tf.zeros([3]), "b": tf.zeros([3, 4])})
    assert outputs["a"].shape == (3, 1)
    assert outputs["b"].shape == (3, 4, 1)


def test_configuration():
    layer = InnerReshape.from_config(InnerReshape([None], [-1, 2]).get_config())
    assert layer(tf.zeros([1, 6])).shape == (1, 3, 2)


def test_wrong_shapes():
    with pytest.raises(ValueError, match="Mismatched number of elements"):
        InnerReshape([6], [4])
    with pytest.raises(ValueError, match="current_shape must have known rank"):
        InnerReshape(tf.TensorShape(None), [4])
    with pytest.raises(ValueError, match="one unknown dimension at most"):
        InnerReshape([6], [-1, -1])
    with pytest.raises(ValueError, match=r"shape \(1, 5\), expected.*\[6\]"):
        InnerReshape([6], [2, 3])(tf.zeros([1, 5]))
