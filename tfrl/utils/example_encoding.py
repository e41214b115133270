"""Encodes nests of arrays as `tf.train.Example` protos, and decodes them.

Each leaf is a feature named by its path, such as "observation/camera". The format is
TF-Agents', so either library reads the other's files: float32 as a FloatList, int64 as
an Int64List, everything else as bytes, in C order and little endian. Strings, and the
dtypes bool, uint32, uint64, bfloat16 and complex, are supported here only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.specs import matching
from tfrl.utils import nest_utils

# `tf.io.decode_raw` lacks these dtypes; it decodes their bits as another dtype.
_DECODED_AS = {tf.uint32: tf.int32, tf.uint64: tf.int64}
_RAW_DTYPES = (
    *(tf.half, tf.bfloat16, tf.float64, tf.complex64, tf.complex128, tf.bool),
    *(tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.int8, tf.int16, tf.int32),
)
_CHANNELS = {"jpeg": (1, 3), "png": (1, 2, 3, 4)}
_SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG")


def get_example_encoder(
    spec: Any, compress_image: bool | str = False, image_quality: int = 95
) -> Callable[[Any], tf.train.Example]:
    """Returns a function that encodes a nest of arrays as a `tf.train.Example`.

    Args:
      spec: The nest of `ArraySpec`s or `TensorSpec`s of one example.
      compress_image: Whether uint8 leaves `[height, width, channels]` are compressed:
        True or "jpeg" (1 or 3 channels, changes the picture a little), or "png" (1 to 4
        channels, changes nothing).
      image_quality: The JPEG quality, from 0 to 100; higher is better and larger.

    Returns:
      A function of a nest of arrays. It raises a ValueError that names the leaf if the
      arrays do not have exactly the structure, shapes and dtypes of `spec`.

    Raises:
      ValueError: If a leaf's shape is not known, or its dtype or number of channels
        cannot be encoded.
    """
    leaves = _leaves(spec, compress_image, image_quality)

    def encode(features_nest: Any) -> tf.train.Example:
        nest_utils.assert_same_structure(
            spec,
            features_nest,
            message="The nest to encode does not have the structure of its spec",
        )
        values = tf.nest.flatten(features_nest)
        features = {
            leaf.path: leaf.encode(value)
            for leaf, value in zip(leaves, values, strict=True)
        }
        return tf.train.Example(features=tf.train.Features(feature=features))

    return encode


def get_example_serializer(
    spec: Any, compress_image: bool | str = False, image_quality: int = 95
) -> Callable[[Any], bytes]:
    """Returns a function that encodes a nest of arrays as bytes.

    For the arguments and errors see `get_example_encoder`.
    """
    encode = get_example_encoder(spec, compress_image, image_quality)
    return lambda features_nest: encode(features_nest).SerializeToString()


def get_example_decoder(
    example_spec: Any, batched: bool = False, compress_image: bool | str = False
) -> Callable[..., Any]:
    """Returns a function that decodes bytes into a nest of tensors like the spec.

    The function works in graphs, so `tf.data.Dataset.map` can call it.

    Args:
      example_spec: The nest of specs with which the examples were encoded.
      batched: Whether the function takes a batch of examples.
      compress_image: Whether images were compressed, as JPEG or PNG.

    Returns:
      A function of a string tensor, `[]`, or `[B]` if `batched`. An optional second
      argument of the same shape, `names`, names the examples in errors. Examples that
      do not match the spec raise `tf.errors.InvalidArgumentError`, which names the
      field.

    Raises:
      ValueError: If a leaf's shape is not known, or its dtype or number of channels
        cannot be encoded.
    """
    # The files say themselves whether they are JPEG or PNG.
    leaves = _leaves(example_spec, "png" if compress_image else False)
    features = {leaf.path: leaf.feature() for leaf in leaves}

    def decode(serialized: Any, names: Any = None) -> Any:
        if names is None:
            names = tf.fill(tf.shape(serialized), "an example")
        if batched:
            raw = tf.io.parse_example(serialized, features, example_names=names)
        else:
            raw = tf.io.parse_example([serialized], features, example_names=[names])
            raw = {path: value[0] for path, value in raw.items()}
        values = [leaf.decode(raw[leaf.path], names) for leaf in leaves]
        return tf.nest.pack_sequence_as(example_spec, values)

    return decode


@dataclasses.dataclass(frozen=True)
class _Leaf:
    """Encodes and decodes the values of one leaf."""

    path: str
    shape: tuple[int, ...]
    dtype: Any
    image_format: str | None
    image_quality: int

    def feature(self) -> Any:
        """Returns the feature's description for `tf.io.parse_example`."""
        if self.dtype in (tf.float32, tf.int64, tf.string):
            return tf.io.FixedLenFeature(self.shape, self.dtype)
        return tf.io.FixedLenFeature((), tf.string)

    def encode(self, value: Any) -> tf.train.Feature:
        """Encodes one array."""
        value = self._checked(np.asarray(value))
        if self.dtype == tf.float32:
            floats = tf.train.FloatList(value=value.ravel())
            return tf.train.Feature(float_list=floats)
        if self.dtype == tf.int64:
            integers = tf.train.Int64List(value=value.ravel())
            return tf.train.Feature(int64_list=integers)
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=self._bytes(value)))

    def decode(self, value: Any, names: Any) -> Any:
        """Decodes a parsed feature of one example or a batch."""
        if self.dtype in (tf.float32, tf.int64, tf.string):
            return value
        if self.image_format is None:
            return self._decode_raw(value, names)
        if value.shape.rank == 0:
            return self._decode_image(value, names)
        return tf.map_fn(
            lambda pair: self._decode_image(*pair),
            (value, tf.convert_to_tensor(names)),
            fn_output_signature=tf.TensorSpec(self.shape, self.dtype),
        )

    def _checked(self, value: np.ndarray) -> np.ndarray:
        # Text is compared as objects, and numbers of either byte order.
        is_text = self.dtype == tf.string and value.dtype.kind in "SU"
        dtype = np.object_ if is_text else value.dtype.newbyteorder("=")
        value = value.astype(dtype, copy=False)
        where = self.path or "the example"
        matching.check(where, value, self, remedy="encode arrays that follow the spec")
        return value

    def _bytes(self, value: np.ndarray) -> list[bytes]:
        if self.dtype == tf.string:
            return [tf.compat.as_bytes(item) for item in value.ravel().tolist()]
        if self.image_format == "jpeg":
            encoded = tf.io.encode_jpeg(value, quality=self.image_quality)
            return [encoded.numpy()]
        if self.image_format == "png":
            return [tf.io.encode_png(value).numpy()]
        if value.dtype.kind in "iufc":
            value = value.astype(value.dtype.newbyteorder("<"), copy=False)
        return [value.tobytes()]

    def _decode_raw(self, value: Any, names: Any) -> Any:
        expected = math.prod(self.shape) * self.dtype.size
        lengths = tf.strings.length(value)
        check = self._assert(lengths == expected, names, expected, "bytes", lengths)
        with tf.control_dependencies([check]):
            decoded_as = _DECODED_AS.get(self.dtype, self.dtype)
            decoded = tf.io.decode_raw(value, decoded_as)
        if decoded_as != self.dtype:
            decoded = tf.bitcast(decoded, self.dtype)
        outer_shape = [-1] if value.shape.rank else []
        return tf.reshape(decoded, (*outer_shape, *self.shape))

    def _decode_image(self, value: Any, names: Any) -> Any:
        starts = [tf.strings.substr(value, 0, len(each)) for each in _SIGNATURES]
        is_image = tf.reduce_any(
            [start == each for start, each in zip(starts, _SIGNATURES, strict=True)]
        )
        check = self._assert(is_image, names, "JPEG", "or PNG", starts[1])
        with tf.control_dependencies([check]):
            image = tf.io.decode_image(value, expand_animations=False)
        check = self._assert(
            tf.reduce_all(tf.equal(tf.shape(image), self.shape)),
            names,
            self.shape,
            "pixels",
            tf.shape(image),
        )
        with tf.control_dependencies([check]):
            return tf.ensure_shape(tf.identity(image), self.shape)

    def _assert(
        self, condition: Any, names: Any, expected: Any, unit: str, value: Any
    ) -> Any:
        return tf.debugging.Assert(
            tf.reduce_all(condition),
            [
                names,
                f"field {self.path!r}: expected {expected} {unit}, got",
                value,
                "; decode with the spec and compress_image it was encoded with.",
            ],
        )


def _leaves(
    spec: Any, compress_image: bool | str, image_quality: int = 95
) -> Sequence[_Leaf]:
    image_format = "jpeg" if compress_image is True else compress_image or None
    if image_format not in (None, *_CHANNELS):
        raise ValueError(
            f"compress_image: got {compress_image!r}, expected True, False, 'jpeg' or "
            "'png'; choose 'png' to change no pixel."
        )
    return [
        _leaf(path or "", leaf, image_format, image_quality)
        for path, leaf in nest_utils.flatten_with_joined_paths(spec)
    ]


def _leaf(path: str, spec: Any, image_format: str | None, quality: int) -> _Leaf:
    where = path or "spec"
    shape, dtype = tuple(spec.shape), tf.as_dtype(spec.dtype)
    if not all(isinstance(dim, int) and dim > 0 for dim in shape):
        raise ValueError(
            f"{where}: got shape {shape}, expected positive integers; give the spec of "
            "a single example, all of its dimensions known."
        )
    if dtype not in (tf.float32, tf.int64, tf.string, *_RAW_DTYPES):
        raise ValueError(
            f"{where}: got dtype {dtype.name}, expected one whose values can be "
            "written, such as float32, int64, uint8, bool or string; cast it first."
        )
    if len(shape) != 3 or dtype != tf.uint8:
        image_format = None
    if image_format is not None and shape[2] not in _CHANNELS[image_format]:
        raise ValueError(
            f"{where}: got {shape[2]} channels, expected one of "
            f"{_CHANNELS[image_format]} for {image_format}; use compress_image='png' "
            "for up to 4 channels, or False."
        )
    return _Leaf(path, shape, dtype, image_format, quality)
