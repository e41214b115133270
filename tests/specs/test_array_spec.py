import copy
import pickle
import subprocess
import sys
from collections import OrderedDict, namedtuple

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tfrl import specs
from tfrl.specs import array_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec

INTEGERS = (
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
)
FLOATS = (np.float16, np.float32, np.float64)


def random_state():
    return np.random.RandomState(0)


def generator():
    return np.random.default_rng(0)


def test_imports_without_tensorflow():
    code = (
        "import sys, tfrl.specs\n"
        "tfrl.specs.array_spec, tfrl.specs.BoundedArraySpec\n"
        "tfrl.specs.gym_spaces, tfrl.specs.dm_env_specs\n"
        "tfrl.specs.make_environment_spec\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_package_exports_specs_of_tensors_too():
    assert issubclass(specs.BoundedTensorSpec, tf.TensorSpec)
    assert specs.TensorSpec is tf.TensorSpec


def test_repr_is_tf_agents():
    action = BoundedArraySpec((), np.int64, 0, 1, "action")
    reward = ArraySpec((), np.float32, "reward")
    high = np.array([4.8, np.inf, 0.41887903, np.inf], np.float32)
    observation = BoundedArraySpec((4,), np.float32, -high, high, "observation")
    assert repr(action) == (
        "BoundedArraySpec(shape=(), dtype=dtype('int64'), name='action', "
        "minimum=0, maximum=1)"
    )
    assert repr(reward) == (
        "ArraySpec(shape=(), dtype=dtype('float32'), name='reward')"
    )
    assert repr(observation) == (
        "BoundedArraySpec(shape=(4,), dtype=dtype('float32'), name='observation', "
        "minimum=[-4.8000002e+00 -3.4028235e+38 -4.1887903e-01 -3.4028235e+38], "
        "maximum=[4.8000002e+00 3.4028235e+38 4.1887903e-01 3.4028235e+38])"
    )


def test_numpy_dimensions_print_as_integers():
    assert ArraySpec(np.array([2, 3]), np.int32).shape == (2, 3)
    assert "np.int64" not in repr(ArraySpec(np.array([2, 3]), np.int32))


@pytest.mark.parametrize("shape", [3, (2.5,), ("2",)])
def test_shape_must_be_integers(shape):
    with pytest.raises(TypeError, match=r"shape: got .* expected an iterable of int"):
        ArraySpec(shape, np.float32)


def test_equality_ignores_name_and_compares_shape_and_dtype():
    assert ArraySpec((2,), np.int32, "a") == ArraySpec([2], "int32", "b")
    assert ArraySpec((2,), np.int32) != ArraySpec((3,), np.int32)
    assert ArraySpec((2,), np.int32) != ArraySpec((2,), np.int64)
    assert ArraySpec((2,), np.int32) != "a string"


def test_equality_compares_bounds_as_they_broadcast():
    spec = BoundedArraySpec((2,), np.int32, 0, 5)
    assert spec == BoundedArraySpec((2,), np.int32, [0, 0], [5, 5], "other")
    assert spec != BoundedArraySpec((2,), np.int32, 0, [5, 6])
    assert spec != BoundedArraySpec((2,), np.int32, [0, -1], 5)
    assert spec != ArraySpec((2,), np.int32)
    assert ArraySpec((2,), np.int32) != spec


def test_equal_specs_hash_alike():
    a = BoundedArraySpec((2,), np.int32, 0, 5)
    b = BoundedArraySpec((2,), np.int32, [0, 0], [5, 5], "other")
    assert hash(a) == hash(b)
    assert {a: 1}[b] == 1
    assert hash(ArraySpec((2,), np.int32)) == hash(ArraySpec((2,), np.int32, "x"))


@pytest.mark.parametrize(
    "spec",
    [
        ArraySpec((2, 3), np.uint8, "pixels"),
        BoundedArraySpec((2,), np.float32, -1, [1, 2], "action"),
        BoundedArraySpec((), ml_dtypes.bfloat16, 0, 1),
    ],
)
def test_specs_pickle_and_copy(spec):
    for other in (pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert type(other) is type(spec)
        assert other == spec
        assert other.name == spec.name


@pytest.mark.parametrize(
    ("value", "conforms"),
    [
        (np.zeros(2, np.float32), True),
        (np.zeros(3, np.float32), False),
        (np.zeros((), np.float32), False),
        (np.zeros(2, np.float64), False),
        ([0.0, 0.0], False),
        ((0.0, 0.0), False),
        (None, False),
    ],
)
def test_check_array_wants_shape_and_dtype(value, conforms):
    assert ArraySpec((2,), np.float32).check_array(value) is conforms


@pytest.mark.parametrize(
    ("dtype", "value", "conforms"),
    [
        (np.int64, 1, True),
        (np.int32, 1, False),
        (np.int32, np.int32(1), True),
        (np.float64, 1.0, True),
        (np.float32, np.float32(1), True),
        (np.bool_, True, True),
        (np.bool_, np.bool_(True), True),
    ],
)
def test_check_array_takes_scalars(dtype, value, conforms):
    assert ArraySpec((), dtype).check_array(value) is conforms


def test_unknown_dimension_matches_any_length():
    spec = ArraySpec((None, 2), np.int32)
    assert spec.check_array(np.zeros((7, 2), np.int32))
    assert not spec.check_array(np.zeros((7, 3), np.int32))
    assert not spec.check_array(np.zeros((2,), np.int32))


@pytest.mark.parametrize(
    ("value", "conforms"),
    [
        ([-1.0, 2.0], True),
        ([0.0, 0.0], True),
        ([-1.1, 0.0], False),
        ([0.0, 2.1], False),
        ([1.5, 0.0], False),
        ([np.nan, 0.0], False),
    ],
)
def test_check_array_checks_inclusive_bounds(value, conforms):
    spec = BoundedArraySpec((2,), np.float64, -1.0, [1.0, 2.0])
    assert spec.check_array(np.array(value)) is conforms


def test_bounds_default_to_the_dtype():
    spec = BoundedArraySpec((2,), np.int8)
    assert (spec.minimum, spec.maximum) == (-128, 127)
    assert BoundedArraySpec((), np.bool_).maximum == np.True_


def test_bounds_have_the_dtype_and_are_read_only():
    given = np.array([1, 2])
    spec = BoundedArraySpec((2,), np.float32, 0, given)
    assert spec.minimum.dtype == spec.maximum.dtype == np.float32
    for bound in (spec.minimum, spec.maximum):
        with pytest.raises(ValueError, match="read-only"):
            bound[...] = 5
    given[0] = 7
    np.testing.assert_array_equal(spec.maximum, [1, 2])


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinite_bounds_become_the_largest_finite_numbers(dtype):
    spec = BoundedArraySpec((2,), dtype, [-np.inf, 0], np.inf)
    limits = np.finfo(dtype)
    np.testing.assert_array_equal(spec.minimum, np.array([limits.min, 0], dtype))
    assert spec.maximum == limits.max


def test_float64_rounding_of_the_float32_limit_is_within_it():
    # The shortest decimal that prints the limit is a little above it in float64.
    spec = BoundedArraySpec((), np.float32, -3.4028235e38, 3.4028235e38)
    assert spec == BoundedArraySpec((), np.float32)


@pytest.mark.parametrize(
    ("dtype", "minimum", "maximum"),
    [
        (np.float32, -1e40, 1),
        (np.float32, np.nan, 1),
        (np.float32, 0, np.nan),
        (np.float16, 0, 70000),
        (np.int32, -np.inf, 1),
        (np.int32, 0, np.nan),
        (np.int32, 0, 2**31),
        (np.uint8, -1, 1),
        (np.uint8, 0, 256),
        (np.uint64, 0, 2**64),
        (np.int64, -(2**63) - 1, 0),
    ],
)
def test_bounds_must_fit_the_dtype(dtype, minimum, maximum):
    name = np.dtype(dtype).name
    with pytest.raises(ValueError, match=rf"expected numbers within .* of {name}; "):
        BoundedArraySpec((), dtype, minimum, maximum)


def test_integer_limits_are_exact():
    assert BoundedArraySpec((), np.uint64, 0, 2**64 - 1).maximum == 2**64 - 1
    assert BoundedArraySpec((), np.int64, -(2**63), 0).minimum == -(2**63)


def test_bounds_must_broadcast():
    with pytest.raises(ValueError, match=r"minimum: got a bound of shape \(3,\)"):
        BoundedArraySpec((2,), np.float32, [0, 0, 0], 1)
    with pytest.raises(ValueError, match=r"maximum: got a bound of shape \(1, 2\)"):
        BoundedArraySpec((2,), np.float32, 0, [[1, 1]])


def test_minimum_must_not_exceed_maximum():
    with pytest.raises(ValueError, match=r"minimum: got \[0 3\] with maximum 2.*swap"):
        BoundedArraySpec((2,), np.int32, [0, 3], 2)


def test_strings_have_specs_but_no_bounds():
    spec = ArraySpec((), "U5")
    assert spec.check_array(np.array("hello"))
    with pytest.raises(TypeError, match=r"dtype: got <U5, .*use ArraySpec"):
        BoundedArraySpec((), "U5")
    with pytest.raises(TypeError, match="can be sampled"):
        array_spec.sample_spec_nest(spec, random_state())


def test_from_array():
    assert ArraySpec.from_array(np.zeros((2, 3), np.uint8), "x") == ArraySpec(
        (2, 3), np.uint8
    )
    assert ArraySpec.from_array(5) == ArraySpec((), np.int64)
    assert ArraySpec.from_array(np.float32(5)) == ArraySpec((), np.float32)
    with pytest.raises(ValueError, match=r"array: got \[1, 2\] of type list"):
        ArraySpec.from_array([1, 2])


def test_from_spec_keeps_or_drops_bounds_and_keeps_names():
    bounded = BoundedArraySpec((2,), np.int32, 0, 5, "a")
    plain = ArraySpec.from_spec(bounded)
    assert type(plain) is ArraySpec
    assert plain.name == "a"
    assert BoundedArraySpec.from_spec(bounded) == bounded
    widened = BoundedArraySpec.from_spec(plain, name="b")
    assert widened == BoundedArraySpec((2,), np.int32)
    assert widened.name == "b"


def test_replace_changes_only_what_is_given():
    spec = BoundedArraySpec((2,), np.int32, 0, [5, 6], "a")
    renamed = spec.replace(name="b")
    assert renamed == spec
    assert renamed.name == "b"
    assert spec.replace(maximum=9) == BoundedArraySpec((2,), np.int32, 0, 9)
    assert spec.replace(shape=(3, 2)) == BoundedArraySpec((3, 2), np.int32, 0, [5, 6])
    plain = ArraySpec((2,), np.int32, "a").replace(dtype=np.int64)
    assert plain == ArraySpec((2,), np.int64)
    assert plain.name == "a"


def test_replace_fits_bounds_to_a_narrower_dtype():
    spec = BoundedArraySpec((2,), np.float64, [-np.inf, -1], np.inf)
    assert spec.replace(dtype=np.float32) == BoundedArraySpec(
        (2,), np.float32, [-np.inf, -1], np.inf
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (BoundedArraySpec((), np.int32, 0, 4), 5),
        (BoundedArraySpec((), np.int64, -2, 2), 5),
        (BoundedArraySpec((2,), np.int32, 0, 4), [5, 5]),
        (BoundedArraySpec((2,), np.int32, [0, 1], [4, 4]), [5, 4]),
        (BoundedArraySpec((), np.uint8), 256),
        (BoundedArraySpec((), np.int8), 256),
        (BoundedArraySpec((), np.int64), 2**63 - 1),
    ],
)
def test_num_values_counts_both_bounds(spec, expected):
    np.testing.assert_array_equal(spec.num_values, expected)
    assert np.shape(spec.num_values) == spec.shape


def test_num_values_of_floats_is_none():
    assert BoundedArraySpec((), np.float32, 0, 1).num_values is None


def test_kinds_of_dtypes():
    for dtype in INTEGERS:
        assert array_spec.is_discrete(ArraySpec((), dtype))
        assert not array_spec.is_continuous(ArraySpec((), dtype))
    for dtype in (*FLOATS, ml_dtypes.bfloat16):
        assert array_spec.is_continuous(ArraySpec((), dtype))
        assert not array_spec.is_discrete(ArraySpec((), dtype))
    assert not array_spec.is_discrete(ArraySpec((), np.bool_))
    assert array_spec.is_bounded(BoundedArraySpec((), np.int32))
    assert not array_spec.is_bounded(ArraySpec((), np.int32))


@pytest.mark.parametrize("make_rng", [random_state, generator])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_sampled_integers_include_both_bounds(make_rng, dtype):
    spec = BoundedArraySpec((300,), dtype, 1, 3)
    sample = array_spec.sample_bounded_spec(spec, make_rng())
    assert sample.dtype == dtype
    assert set(sample.tolist()) == {1, 2, 3}


@pytest.mark.parametrize("make_rng", [random_state, generator])
def test_sampled_integers_reach_the_end_of_the_dtype(make_rng):
    for dtype in INTEGERS:
        top = int(np.iinfo(dtype).max)
        spec = BoundedArraySpec((100,), dtype, top - 1, top)
        sample = array_spec.sample_bounded_spec(spec, make_rng())
        assert set(sample.tolist()) == {top - 1, top}


@pytest.mark.parametrize("make_rng", [random_state, generator])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, np.bool_, ml_dtypes.bfloat16])
def test_whole_range_sampling_spreads_and_stays_finite(make_rng, dtype):
    spec = ArraySpec((1000,), dtype)
    with np.errstate(all="raise"):
        sample = array_spec.sample_spec_nest(spec, make_rng())
    assert sample.dtype == dtype
    assert sample.shape == (1000,)
    values = sample.astype(np.float64)
    assert np.all(np.isfinite(values))
    low, high = BoundedArraySpec.from_spec(spec).minimum, np.float64(values.max())
    assert values.min() < float(low) * 0.4 + high * 0.1
    middle = float(BoundedArraySpec.from_spec(spec).maximum) / 2 + float(low) / 2
    assert 0.4 < np.mean(values > middle) < 0.6


@pytest.mark.parametrize("make_rng", [random_state, generator])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_sampling_honours_bounds_of_each_element(make_rng, dtype):
    spec = BoundedArraySpec((3,), dtype, [-5, 0, 7], [-4, 1, 8])
    samples = array_spec.sample_spec_nest(spec, make_rng(), outer_dims=(200,))
    assert samples.shape == (200, 3)
    assert np.all(samples >= spec.minimum)
    assert np.all(samples <= spec.maximum)
    if dtype != np.float32:
        assert [set(column.tolist()) for column in samples.T] == [
            {-5, -4},
            {0, 1},
            {7, 8},
        ]


@pytest.mark.parametrize("make_rng", [random_state, generator])
def test_one_element_may_fill_64_bits_beside_a_narrow_one(make_rng):
    limits = np.iinfo(np.int64)
    spec = BoundedArraySpec((2,), np.int64, [limits.min, 0], [limits.max, 1])
    samples = array_spec.sample_spec_nest(spec, make_rng(), (100,))
    assert set(samples[:, 1].tolist()) == {0, 1}
    assert samples[:, 0].min() < -(2**61)
    assert samples[:, 0].max() > 2**61


@pytest.mark.parametrize("make_rng", [random_state, generator])
def test_empty_bounds_give_empty_samples(make_rng):
    for dtype in (np.int32, np.float32):
        spec = BoundedArraySpec((0,), dtype, np.zeros(0), np.ones(0))
        assert array_spec.sample_bounded_spec(spec, make_rng()).shape == (0,)


@pytest.mark.parametrize("make_rng", [random_state, generator])
def test_equal_rngs_give_equal_samples(make_rng):
    spec = {
        "a": BoundedArraySpec((2,), np.float32, -1, 1),
        "b": (ArraySpec((), np.int32), BoundedArraySpec((3,), np.uint8)),
    }
    first = array_spec.sample_spec_nest(spec, make_rng())
    second = array_spec.sample_spec_nest(spec, make_rng())
    np.testing.assert_array_equal(first["a"], second["a"])
    np.testing.assert_array_equal(first["b"][0], second["b"][0])
    np.testing.assert_array_equal(first["b"][1], second["b"][1])


def test_samples_conform_to_their_nest_of_specs():
    Pair = namedtuple("Pair", "left right")
    spec = Pair({"x": BoundedArraySpec((2,), np.float32, 0, 1)}, [ArraySpec((), int)])
    sample = array_spec.sample_spec_nest(spec, random_state())
    assert isinstance(sample, Pair)
    assert array_spec.check_arrays_nest(sample, spec)


def test_check_arrays_nest_compares_structure_and_leaves():
    spec = {"a": ArraySpec((2,), np.float32), "b": (ArraySpec((), np.int64),)}
    good = {"a": np.zeros(2, np.float32), "b": (1,)}
    assert array_spec.check_arrays_nest(good, spec)
    assert array_spec.check_arrays_nest(OrderedDict(good), spec)
    assert not array_spec.check_arrays_nest({**good, "c": 1}, spec)
    assert not array_spec.check_arrays_nest({"a": good["a"]}, spec)
    assert not array_spec.check_arrays_nest({**good, "b": [1]}, spec)
    assert not array_spec.check_arrays_nest({**good, "b": (1.5,)}, spec)
    assert not array_spec.check_arrays_nest({**good, "b": ([1],)}, spec)


def test_mismatch_names_path_value_and_spec():
    spec = {"a": (ArraySpec((2,), np.float32),)}
    with pytest.raises(ValueError, match="does not match spec") as error:
        array_spec.assert_arrays_spec_nest({"a": (np.zeros(3),)}, spec)
    assert str(error.value) == (
        "a/0: the value array([0., 0., 0.]) of shape (3,) and dtype float64 does not "
        "match spec: ArraySpec(shape=(2,), dtype=dtype('float32'), name=None); give an "
        "array of that shape and dtype, within the bounds if any."
    )


def test_large_values_stay_out_of_messages():
    with pytest.raises(ValueError, match=r"the value of shape \(84, 84\) and dtype"):
        array_spec.assert_arrays_spec_nest(
            np.zeros((84, 84)), ArraySpec((84, 84), np.uint8)
        )


def test_specs_that_are_no_array_specs_are_named():
    with pytest.raises(TypeError, match=r"the array: got 'x' of type str for its spec"):
        array_spec.assert_arrays_spec_nest(np.zeros(2), "x")


def test_add_outer_dims_nest():
    spec = {
        "a": ArraySpec((2,), np.int32, "a"),
        "b": BoundedArraySpec((2,), np.int32, [0, 1], 5, "b"),
    }
    batched = array_spec.add_outer_dims_nest(spec, (3,))
    assert batched["a"] == ArraySpec((3, 2), np.int32)
    assert batched["b"] == BoundedArraySpec((3, 2), np.int32, [[0, 1]] * 3, 5)
    assert (batched["a"].name, batched["b"].name) == ("a", "b")
