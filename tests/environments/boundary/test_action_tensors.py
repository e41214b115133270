import pytest
import tensorflow as tf

from tfrl.environments.boundary import action_tensors
from tfrl.specs import tensor_spec

SPEC = {
    "choice": tensor_spec.BoundedTensorSpec((), tf.int32, 0, 3),
    "force": tensor_spec.TensorSpec((2,), tf.float32),
}


def test_tensors_come_in_the_order_and_dtypes_of_the_specs():
    choice, force = action_tensors.flatten(
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
        action_tensors.flatten(action, SPEC, 1)
