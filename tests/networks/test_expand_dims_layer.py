import numpy as np
import pytest

from tfrl.networks import expand_dims_layer


@pytest.mark.parametrize(
    ("axis", "shape"),
    [(0, (5, 1, 2, 3)), (1, (5, 2, 1, 3)), (-1, (5, 2, 3, 1)), (-2, (5, 2, 1, 3))],
)
def test_batch_dimension_is_left_alone(axis, shape):
    layer = expand_dims_layer.ExpandDims(axis)
    assert layer(np.zeros([5, 2, 3])).shape == shape
    assert layer.compute_output_shape((5, 2, 3)) == shape


def test_configuration():
    layer = expand_dims_layer.ExpandDims(-2, name="expand")
    copied = expand_dims_layer.ExpandDims.from_config(layer.get_config())
    assert (copied.axis, copied.name) == (-2, "expand")
