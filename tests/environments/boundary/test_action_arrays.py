import numpy as np
import pytest

from tfrl.environments.boundary import action_arrays
from tfrl.specs import array_spec

SPEC = {
    "choice": array_spec.BoundedArraySpec((), np.int32, 0, 3),
    "force": array_spec.ArraySpec((2,), np.float32),
}


def test_arrays_come_in_the_order_and_dtypes_of_the_specs():
    choice, force = action_arrays.ActionChecker("Maze", SPEC)(
        {"force": [0.5, 1.5], "choice": np.int64(2)}
    )
    assert (choice, choice.dtype) == (2, np.int32)
    assert (force.tolist(), force.dtype) == ([0.5, 1.5], np.float32)


def test_a_batch_stands_in_front():
    choice, force = action_arrays.ActionChecker("Maze", SPEC, (3,))(
        {"force": np.zeros((3, 2)), "choice": [0, 1, 2]}
    )
    assert (choice.shape, force.shape) == ((3,), (3, 2))


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (
            {"choice": 0},
            ValueError,
            "^action: got .*another structure than the expected",
        ),
        (0, ValueError, "^action: got 0, another structure than the expected one, "),
        (
            {"choice": 0, "force": [0.0]},
            ValueError,
            r"^action/force: got shape \(1,\), expected \(2,\), for environment Maze",
        ),
        (
            {"choice": 0.5, "force": [0.0, 0.0]},
            TypeError,
            "^action/choice: got dtype float64 with 0.5, expected an array of dtype ",
        ),
    ],
)
def test_what_breaks_the_specs_is_named(action, error, message):
    with pytest.raises(error, match=message):
        action_arrays.ActionChecker("Maze", SPEC)(action)
