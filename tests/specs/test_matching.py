"""Tests of `specs.matching`."""

import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec, matching
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec

SIZES = [(), (1,), (2,), (1, 2), (2, 2), (None,), (None, 2), (2, 1, 2)]


def _as_tensorflow(shape, inner, outer):
    """Returns the answer of `tf.TensorShape`."""
    shape, inner = tf.TensorShape(shape), tf.TensorShape(inner)
    if outer is None:
        if inner.rank > shape.rank:
            return False
        return inner.is_compatible_with(shape[shape.rank - inner.rank :])
    return tf.TensorShape([*outer, *inner]).is_compatible_with(shape)


@pytest.mark.parametrize("kind", [tuple, tf.TensorShape])
@pytest.mark.parametrize("outer", [(), (2,), (None,), (None, 2), None])
def test_shapes_fit_as_in_tensorflow(kind, outer):
    for shape, inner in itertools.product(SIZES, SIZES):
        expected = _as_tensorflow(shape, inner, outer)
        assert matching.fits(kind(shape), kind(inner), outer) == expected


def test_an_unknown_rank_fits_any_shape():
    assert matching.fits(tf.TensorShape(None), (2,), (3,))
    assert matching.fits((2,), tf.TensorShape(None), None)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.dtype(np.float32), tf.float32, True),
        (tf.bfloat16, np.dtype(tf.bfloat16.as_numpy_dtype), True),
        (tf.string, np.dtype(np.object_), True),
        ("float32", tf.float32, True),
        (np.dtype(np.int64), tf.int32, False),
        (np.dtype(np.float64), np.dtype(np.float32), False),
    ],
)
def test_dtypes_of_both_libraries_are_compared(one, other, same):
    assert matching.same_dtype(one, other) == matching.same_dtype(other, one) == same


@pytest.mark.parametrize(
    ("outer", "given", "expected"),
    [
        ((), (3,), r"\(2,\)"),
        ((4,), (3,), r"\(4, 2\)"),
        ((None,), (2, 3), r"\(None, 2\)"),
        (None, (5, 3), r"\(..., 2\)"),
    ],
)
@pytest.mark.parametrize(
    "spec", [ArraySpec((2,), np.int32), tf.TensorSpec([2], "int32")]
)
def test_another_shape_is_an_error_with_both_shapes(spec, outer, given, expected):
    message = rf"^act: got shape {given}, expected {expected}; mend it\.$".replace(
        str(given), str(given).replace("(", r"\(").replace(")", r"\)")
    )
    for values in (np.zeros(given, np.int32), tf.zeros(given, tf.int32)):
        with pytest.raises(ValueError, match=message):
            matching.check("act", values, spec, outer, remedy="mend it")


def test_the_kind_of_the_error_for_another_dtype_is_chosen():
    spec = tf.TensorSpec([2], tf.float32)
    message = r"^act: got dtype float64, expected float32; mend it\.$"
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match=message):
            matching.check("act", np.zeros(2), spec, remedy="mend it", dtype_error=kind)


def test_arrays_are_cast_within_their_kind():
    spec = ArraySpec((), np.int32)
    assert matching.cast(np.array(3), spec).dtype == np.int32
    assert matching.cast(np.array(3.0), spec).dtype == np.float64
    assert matching.cast(np.array(3), tf.TensorSpec([], tf.float32)).dtype == np.float32


def test_it_starts_without_tensorflow():
    program = "import sys, tfrl.specs.matching; sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_first_number_out_of_bounds_is_named():
    spec = BoundedArraySpec((2,), np.float32, [0, -1], 1)
    matching.check_bounds("act", np.array([[0, -1], [1, 1]]), spec, remedy="mend it")
    message = (
        r"^act: got -2\.0 at index \[1, 1\], expected a number in \[-1\.0, 1\.0\], the "
        r"bounds of its spec; mend it\.$"
    )
    values = np.array([[0, -1], [1, -2]], np.float32)
    with pytest.raises(ValueError, match=message):
        matching.check_bounds("act", values, spec, remedy="mend it")
    assert matching.outlier(np.array([np.nan, 0]), spec).startswith("got nan at")
    scalar = BoundedArraySpec((), np.int32, 0, 3)
    assert matching.outlier(np.array(4), scalar).startswith("got 4, expected a number")
    assert matching.outlier(np.array(3), scalar) is None


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 84, 84)])
def test_an_array_without_elements_is_named_by_its_path(shape):
    specs = {
        "a": tf.TensorSpec([2], tf.float32),
        "b": (array_spec.ArraySpec(shape, np.float32),),
    }
    where = re.escape(f"observation_spec/b/0: got the shape {shape}, an array without")
    with pytest.raises(ValueError, match=f"^{where}"):
        matching.check_not_empty(specs, "observation_spec")
    with pytest.raises(ValueError, match=r"^action_spec: got the shape \(0,\)"):
        matching.check_not_empty(tf.TensorSpec([0], tf.float32), "action_spec")


def test_unknown_sizes_and_scalars_pass():
    matching.check_not_empty(
        [
            tf.TensorSpec(None, tf.float32),
            tf.TensorSpec([None, 2], tf.float32),
            array_spec.ArraySpec((None,), np.float32),
            array_spec.ArraySpec((), np.float32),
            None,
        ],
        "observation_spec",
    )
    matching.check_not_empty((), "observation_spec")
