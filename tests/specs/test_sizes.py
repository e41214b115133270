import re

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec, sizes


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 84, 84)])
def test_an_array_without_elements_is_named_by_its_path(shape):
    specs = {
        "a": tf.TensorSpec([2], tf.float32),
        "b": (array_spec.ArraySpec(shape, np.float32),),
    }
    where = re.escape(f"observation_spec/b/0: got the shape {shape}, an array without")
    with pytest.raises(ValueError, match=f"^{where}"):
        sizes.check_not_empty(specs, "observation_spec")
    with pytest.raises(ValueError, match=r"^action_spec: got the shape \(0,\)"):
        sizes.check_not_empty(tf.TensorSpec([0], tf.float32), "action_spec")


def test_unknown_sizes_and_scalars_pass():
    sizes.check_not_empty(
        [
            tf.TensorSpec(None, tf.float32),
            tf.TensorSpec([None, 2], tf.float32),
            array_spec.ArraySpec((None,), np.float32),
            array_spec.ArraySpec((), np.float32),
            None,
        ],
        "observation_spec",
    )
    sizes.check_not_empty((), "observation_spec")
