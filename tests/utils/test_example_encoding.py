import collections

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tfrl.specs import array_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec
from tfrl.utils import example_encoding

Pair = collections.namedtuple("Pair", ["left", "right"])


def round_trip(spec, value, **kwargs):
    serialized = example_encoding.get_example_serializer(spec, **kwargs)(value)
    kwargs.pop("image_quality", None)
    return example_encoding.get_example_decoder(spec, **kwargs)(serialized)


def smooth_picture(channels):
    """A picture without edges, which JPEG changes little."""
    ramp = np.linspace(0, 255, 24)
    plane = (ramp[:, None] + ramp[None, :]) / 2
    return np.repeat(plane[..., None], channels, -1).astype(np.uint8)


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32),
        *(np.uint64, np.bool_),
    ],
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_every_dtype_and_shape_comes_back(dtype, shape):
    rng = np.random.default_rng(0)
    value = rng.integers(0, 100, shape).astype(dtype)
    decoded = round_trip(ArraySpec(shape, dtype), value)
    assert decoded.dtype.as_numpy_dtype == dtype
    assert decoded.shape == shape
    np.testing.assert_array_equal(decoded.numpy(), value)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.uint32])
def test_the_limits_of_integers_come_back(dtype):
    value = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    np.testing.assert_array_equal(round_trip(ArraySpec((2,), dtype), value), value)


def test_infinity_and_nan_come_back():
    value = np.array([np.inf, -np.inf, np.nan, 1e-45], np.float32)
    np.testing.assert_array_equal(round_trip(ArraySpec((4,), np.float32), value), value)


def test_strings_come_back():
    spec = tf.TensorSpec((2,), tf.string)
    decoded = round_trip(spec, np.array([b"a\x00b", "ä".encode()], object))
    assert decoded.numpy().tolist() == [b"a\x00b", "ä".encode()]


def test_nests_come_back_with_their_structure():
    spec = {
        "pair": Pair(
            ArraySpec((2,), np.float32), (BoundedArraySpec((), np.int32, 0, 3),)
        ),
        "list": [ArraySpec((1,), np.uint8), ()],
    }
    value = array_spec.sample_spec_nest(spec, np.random.RandomState(0))
    decoded = round_trip(spec, value)
    tf.nest.assert_same_structure(decoded, value)
    tf.nest.map_structure(np.testing.assert_array_equal, decoded, value)


def test_any_mapping_is_encoded_like_a_dict():
    spec = {"b": ArraySpec((), np.int64), "a": ArraySpec((), np.int64)}
    ordered = collections.OrderedDict(b=np.array(1), a=np.array(2))
    decoded = round_trip(spec, ordered)
    assert (int(decoded["a"]), int(decoded["b"])) == (2, 1)


def test_features_are_named_by_their_path_and_stored_as_tf_agents_does():
    spec = {
        "pair": Pair(ArraySpec((2,), np.float32), ArraySpec((), np.int64)),
        "bytes": ArraySpec((2,), np.int16),
    }
    value = {
        "pair": Pair(np.array([1, 2], np.float32), np.array(3)),
        "bytes": np.array([1, 258], ">i2"),
    }
    features = example_encoding.get_example_encoder(spec)(value).features.feature
    assert set(features) == {"pair/left", "pair/right", "bytes"}
    assert list(features["pair/left"].float_list.value) == [1, 2]
    assert list(features["pair/right"].int64_list.value) == [3]
    assert features["bytes"].bytes_list.value[0] == b"\x01\x00\x02\x01"


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_changes_a_picture_a_little(channels):
    picture = smooth_picture(channels)
    spec = ArraySpec(picture.shape, np.uint8)
    decoded = round_trip(spec, picture, compress_image=True, image_quality=95)
    assert decoded.dtype == tf.uint8
    assert decoded.shape == picture.shape
    difference = np.abs(decoded.numpy().astype(int) - picture)
    assert 0 < difference.max() < 8


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_changes_nothing_and_is_smaller(channels):
    picture = smooth_picture(channels)
    spec = ArraySpec(picture.shape, np.uint8)
    decoded = round_trip(spec, picture, compress_image="png")
    np.testing.assert_array_equal(decoded, picture)
    sizes = [
        len(example_encoding.get_example_serializer(spec, compress)(picture))
        for compress in ("png", False)
    ]
    assert sizes[0] < sizes[1]


def test_only_pictures_are_compressed():
    spec = (ArraySpec((5, 4), np.uint8), ArraySpec((5, 4, 3), np.float32))
    value = array_spec.sample_spec_nest(spec, np.random.RandomState(0))
    decoded = round_trip(spec, value, compress_image=True)
    tf.nest.map_structure(np.testing.assert_array_equal, decoded, value)


@pytest.mark.parametrize("compress_image", [False, "png"])
def test_batched_decoder_in_a_graph(compress_image):
    spec = {"x": ArraySpec((2,), np.float32), "i": ArraySpec((3, 4, 1), np.uint8)}
    values = [
        array_spec.sample_spec_nest(spec, np.random.RandomState(i)) for i in range(3)
    ]
    serialize = example_encoding.get_example_serializer(spec, compress_image)
    decoder = example_encoding.get_example_decoder(
        spec, batched=True, compress_image=compress_image
    )
    decode = tf.function(decoder, input_signature=[tf.TensorSpec([None], tf.string)])
    decoded = decode(tf.constant([serialize(value) for value in values]))
    assert decoded["i"].dtype == tf.uint8
    for i, value in enumerate(values):
        np.testing.assert_array_equal(decoded["x"][i], value["x"])
        np.testing.assert_array_equal(decoded["i"][i], value["i"])


def test_decoded_shapes_are_static():
    spec = (ArraySpec((3, 4, 1), np.uint8), ArraySpec((2,), np.int16))
    for compress_image in (False, True):
        decode = tf.function(
            example_encoding.get_example_decoder(spec, compress_image=compress_image),
            input_signature=[tf.TensorSpec([], tf.string)],
        )
        outputs = decode.get_concrete_function().structured_outputs
        assert [output.shape for output in outputs] == [(3, 4, 1), (2,)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"a": np.zeros(2)},
            r"a: got dtype float64, expected float32",
        ),
        ({"a": np.zeros(3, np.float32)}, r"a: got shape \(3,\).*follow the spec"),
        ({"b": np.zeros(2, np.float32)}, "does not have the structure of its spec"),
    ],
)
def test_a_value_that_breaks_its_spec_is_an_error(value, message):
    encode = example_encoding.get_example_encoder({"a": ArraySpec((2,), np.float32)})
    with pytest.raises(ValueError, match=message):
        encode(value)


@pytest.mark.parametrize(
    ("spec", "kwargs", "message"),
    [
        (
            {"a": tf.TensorSpec((None, 2))},
            {},
            r"a: got shape \(None, 2\), expected pos",
        ),
        (ArraySpec((0,), np.float32), {}, r"spec: got shape \(0,\), expected positive"),
        ({"a": tf.TensorSpec((), tf.qint8)}, {}, "a: got dtype qint8, expected one"),
        (
            {"a": ArraySpec((5, 5, 4), np.uint8)},
            {"compress_image": True},
            r"a: got 4 channels, expected one of \(1, 3\) for jpeg; use .*'png'",
        ),
        (
            ArraySpec((), np.uint8),
            {"compress_image": "gif"},
            "got 'gif', expected True",
        ),
    ],
)
def test_a_spec_that_cannot_be_encoded_is_an_error(spec, kwargs, message):
    with pytest.raises(ValueError, match=message):
        example_encoding.get_example_encoder(spec, **kwargs)


@pytest.mark.parametrize(
    ("written", "read", "kwargs", "message"),
    [
        ({"b": np.float32(1)}, {"a": ArraySpec((), np.float32)}, {}, "Feature: a"),
        (
            {"a": np.zeros(3, np.float32)},
            {"a": ArraySpec((2,), np.float32)},
            {},
            "Key: a.*expected",
        ),
        (
            {"a": np.zeros(3, np.int16)},
            {"a": ArraySpec((2,), np.int16)},
            {},
            "(?s)field 'a': expected 4 bytes, got.*6",
        ),
        (
            {"a": np.zeros((2, 2, 1), np.uint8)},
            {"a": ArraySpec((2, 2, 1), np.uint8)},
            {"compress_image": True},
            "field 'a': expected JPEG or PNG",
        ),
    ],
)
def test_decoding_another_spec_names_the_record_and_the_field(
    written, read, kwargs, message
):
    spec = {key: ArraySpec.from_array(value) for key, value in written.items()}
    serialized = example_encoding.get_example_serializer(spec)(written)
    decode = example_encoding.get_example_decoder(read, **kwargs)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message) as error:
        decode(serialized, "frames.tfrecord record 7")
    assert "frames.tfrecord record 7" in str(error.value)


def test_a_picture_of_another_size_is_an_error():
    picture = smooth_picture(1)
    serialized = example_encoding.get_example_serializer(
        ArraySpec(picture.shape, np.uint8), "png"
    )(picture)
    decode = example_encoding.get_example_decoder(
        ArraySpec((12, 12, 1), np.uint8), compress_image=True
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="pixels, got"):
        decode(serialized)
