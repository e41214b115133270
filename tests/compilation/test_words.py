import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import words

DTYPES = [
    np.bool_,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.float16,
    np.int32,
    np.uint32,
    np.float32,
    np.int64,
    np.uint64,
    np.float64,
]


def specs_of(arrays):
    return [tf.TensorSpec(a.shape, tf.as_dtype(a.dtype)) for a in arrays]


def arrays_to_words(layout, arrays):
    """Returns the stored arrays after writing `arrays`."""
    held = layout.make_arrays()
    for held_array, array in zip(held.values, arrays, strict=True):
        held_array[...] = array
    return held.stored


def round_trip(arrays):
    """From arrays to words, through a graph, to tensors."""
    layout = words.WordLayout(specs_of(arrays), pads=True)

    @tf.function
    def through_a_graph():
        specs = layout.stored_specs
        stored = tf.numpy_function(
            lambda: arrays_to_words(layout, arrays), [], [spec.dtype for spec in specs]
        )
        for tensor, spec in zip(stored, specs, strict=True):
            tensor.set_shape(spec.shape)
        return layout.from_words(stored)

    return through_a_graph()


def some_array(dtype, shape, seed=0):
    raw = np.random.default_rng(seed).integers(0, 100, shape)
    return (raw % 2 == 0) if dtype is np.bool_ else raw.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (3,), (3, 5), (1, 2, 3)])
def test_every_dtype_and_shape_comes_out_as_it_went_in(dtype, shape):
    array = some_array(dtype, shape)
    (tensor,) = round_trip([array])
    assert tensor.dtype == tf.as_dtype(dtype)
    assert tensor.shape == shape
    np.testing.assert_array_equal(tensor, array)


def test_arrays_of_all_kinds_travel_as_one():
    arrays = [some_array(dtype, (3,), i) for i, dtype in enumerate(DTYPES)]
    layout = words.WordLayout(specs_of(arrays), pads=True)
    (stored,) = arrays_to_words(layout, arrays)
    assert stored.dtype == np.uint32
    assert layout.stored_specs == [tf.TensorSpec(stored.shape, tf.uint32)]
    for tensor, array in zip(round_trip(arrays), arrays, strict=True):
        np.testing.assert_array_equal(tensor, array)


@pytest.mark.parametrize(
    ("batch", "as_xla"),
    [
        ([], False),
        ([2], False),
        ([2, 4], False),
        pytest.param([2], True, marks=pytest.mark.slow),
        pytest.param([], True, marks=pytest.mark.slow),
        pytest.param([2, 4], True, marks=pytest.mark.slow),
    ],
)
def test_tensors_and_arrays_have_the_same_words(batch, as_xla):
    arrays = [some_array(dtype, (*batch, 3), i) for i, dtype in enumerate(DTYPES)]
    arrays += [some_array(dtype, (*batch, 1, 5), i) for i, dtype in enumerate(DTYPES)]
    arrays += [some_array(dtype, (*batch,), i) for i, dtype in enumerate(DTYPES)]
    layout = words.WordLayout(
        [tf.TensorSpec(a.shape[len(batch) :], a.dtype) for a in arrays], pads=True
    )
    to_words = tf.function(layout.to_words, autograph=False, jit_compile=as_xla)
    (stored,) = to_words([tf.constant(a) for a in arrays])
    for row in np.ndindex(*batch):
        (expected,) = arrays_to_words(layout, [a[row] for a in arrays])
        np.testing.assert_array_equal(stored[row], expected)
    from_words = tf.function(layout.from_words, autograph=False, jit_compile=as_xla)
    for tensor, array in zip(from_words([stored]), arrays, strict=True):
        assert tensor.dtype == tf.as_dtype(array.dtype)
        np.testing.assert_array_equal(tensor, array)


def test_a_batch_of_unknown_size_is_packed():
    arrays = [some_array(dtype, (4, 3), i) for i, dtype in enumerate(DTYPES)]
    layout = words.WordLayout([tf.TensorSpec([3], a.dtype) for a in arrays], pads=True)

    @tf.function(input_signature=[[tf.TensorSpec([None, 3], a.dtype) for a in arrays]])
    def there_and_back(tensors):
        return layout.from_words(layout.to_words(tensors))

    for tensor, array in zip(there_and_back(arrays), arrays, strict=True):
        np.testing.assert_array_equal(tensor, array)


def test_large_arrays_and_text_are_stored_as_they_are():
    arrays = [
        np.zeros([1, 84, 84], np.uint8),
        np.array([1.5], np.float32),
        np.array([b"left"], object),
    ]
    specs = [
        tf.TensorSpec([1, 84, 84], tf.uint8),
        tf.TensorSpec([1], tf.float32),
        tf.TensorSpec([1], tf.string),
    ]
    layout = words.WordLayout(specs, pads=True)
    assert layout.stored_specs == [
        specs[0],
        specs[2],
        tf.TensorSpec([1], tf.uint32),
    ]
    image, text, stored = arrays_to_words(layout, arrays)
    np.testing.assert_array_equal(image, arrays[0])
    assert text.tolist() == [b"left"]
    np.testing.assert_array_equal(stored, arrays[1].view(np.uint32))


def test_small_elements_are_packed_only_if_they_are_padded():
    specs = [tf.TensorSpec([3], dtype) for dtype in (tf.uint8, tf.bool, tf.int32)]
    assert words.WordLayout(specs).stored_specs == [
        *specs[:2],
        tf.TensorSpec([3], tf.uint32),
    ]
    padded = words.WordLayout(specs, pads=True)
    assert padded.stored_specs == [tf.TensorSpec([1 + 1 + 3], tf.uint32)]


def test_fewer_tensors_than_asked_for_are_not_packed():
    specs = [tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.string)]
    layout = words.WordLayout(specs, fewest=2)
    assert layout.stored_specs == specs
    values = [tf.zeros([3]), tf.constant("x")]
    assert layout.from_words(layout.to_words(values)) == values
    assert (
        words.WordLayout([specs[0]] * 2, fewest=2).stored_specs[-1].dtype == words.WORD
    )


def test_what_is_not_a_number_survives():
    array = np.array([np.nan, np.inf, -0.0], np.float32)
    (tensor,) = round_trip([array])
    np.testing.assert_array_equal(tensor.numpy().view(np.int32), array.view(np.int32))


@pytest.mark.parametrize("as_xla", [False, True])
def test_integers_keep_bits_that_would_be_odd_floats(as_xla):
    # As floats: signalling and quiet NaN, denormal numbers, infinity and minus zero.
    bits = [0x7F800001, 0xFFFFFFFF, 0x7FC00001, 1, 0x807FFFFF, 0x7F800000, 1 << 31]
    values = tf.constant(np.array(bits, np.uint32).view(np.int32))
    layout = words.WordLayout([tf.TensorSpec([len(bits)], tf.int32)])

    @tf.function(jit_compile=as_xla)
    def there_and_back(x):
        return layout.from_words(layout.to_words([x]))[0]

    np.testing.assert_array_equal(there_and_back(values), values)


def test_nothing_in_the_batch_is_nothing_out():
    (tensor,) = round_trip([np.zeros([2, 0], np.float32)])
    assert tensor.shape == (2, 0)


def test_adjacent_floats_are_in_one_array():
    dtypes = [tf.int32, tf.float32, tf.float32, tf.bool, tf.float32, tf.float64]
    specs = [tf.TensorSpec([i + 1], dtype) for i, dtype in enumerate(dtypes)]
    specs.append(tf.TensorSpec([5000], tf.float32))  # Too large to be packed.
    held = words.WordLayout(specs, pads=True).make_arrays()
    for i, array in enumerate(held.values):
        array[...] = i
    assert [array.tolist() for array in held.floats[:3]] == [
        [1, 1, 2, 2, 2],
        [4] * 5,
        [5] * 6,
    ]
    assert held.floats[3] is held.values[6]
    assert len(held.floats) == 4
