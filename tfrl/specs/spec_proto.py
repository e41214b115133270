"""Converts nests of tensor specs to `StructuredValue` protos, and to files.

SavedModels use this format for their signatures, and TF-Agents for its
`policy_specs.pbtxt`, so each library can read the other's files. Bounds are kept. Named
tuples are stored by name and fields. They are read as a class of the same name and
fields, which `tf.nest` treats as equal to the original.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from google.protobuf import message, text_format

from tfrl.compilation import internals
from tfrl.specs import array_spec, nest_levels
from tfrl.specs.bounded_tensor_spec import BoundedTensorSpec


def to_proto(spec: Any) -> Any:
    """Encodes a nest of specs, of tensors or arrays, as a `StructuredValue`.

    Raises:
      TypeError: If the nest contains anything but dense specs, lists, tuples and
        mappings.
    """
    value = internals.structured_value()
    _encode(spec, value)
    return value


def from_proto(spec_proto: Any) -> Any:
    """Decodes a `StructuredValue` into a nest of tensor specs.

    Raises:
      ValueError: If the proto contains a value that is not a spec.
    """
    kind = spec_proto.WhichOneof("kind")
    if kind not in _DECODERS:
        raise ValueError(
            f"spec_proto: got a value of kind {kind!r}, expected a nest of tensor "
            "specs; write the file with tensor_spec.to_pbtxt_file."
        )
    return _DECODERS[kind](getattr(spec_proto, kind))


def from_packed_proto(spec_packed_proto: Any) -> Any:
    """Decodes a `StructuredValue` that was packed into a protobuf `Any`."""
    spec_proto = internals.structured_value()
    spec_packed_proto.Unpack(spec_proto)
    return from_proto(spec_proto)


def to_pbtxt_file(output_path: str, spec: Any) -> None:
    """Writes a nest of specs to a text file, and creates its folder if necessary."""
    folder = os.path.dirname(output_path)
    if folder:
        tf.io.gfile.makedirs(folder)
    with tf.io.gfile.GFile(output_path, "w") as file:
        file.write(text_format.MessageToString(to_proto(spec)))


def from_pbtxt_file(spec_path: str) -> Any:
    """Reads a nest of tensor specs from a file that `to_pbtxt_file` wrote.

    Raises:
      ValueError: If the file does not hold specs, for example because it is damaged.
    """
    with tf.io.gfile.GFile(spec_path, "r") as file, explained(spec_path):
        return from_proto(text_format.Parse(file.read(), internals.structured_value()))


@contextlib.contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises errors of reading a file of specs as a ValueError with its path."""
    try:
        yield
    except (
        message.DecodeError,
        text_format.ParseError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{os.fspath(path)}: cannot be read ({type(error).__name__}: {error}), "
            "expected a nest of tensor specs; restore the file from a copy, or write "
            "it again."
        ) from error


def _encode(spec: Any, value: Any) -> None:
    """Writes `spec` into the empty `value`."""
    taken_apart = nest_levels.split(spec)
    if taken_apart is not None:
        _encode_items(*taken_apart, value)
    elif isinstance(spec, tf.TensorSpec | array_spec.ArraySpec):
        _encode_leaf(spec, value)
    else:
        raise TypeError(
            f"spec: got {spec!r} of type {type(spec).__name__} in the nest, expected "
            "TensorSpecs or ArraySpecs in lists, tuples and mappings; describe an "
            "array with ArraySpec.from_array."
        )


def _encode_items(level: nest_levels.Level, items: Sequence[Any], value: Any) -> None:
    if level.kind == "namedtuple":
        value.named_tuple_value.name = level.name.rpartition(".")[2]
        for key, item in zip(level.keys, items, strict=True):
            _encode(item, value.named_tuple_value.values.add(key=key).value)
        return
    if level.kind in ("list", "tuple"):
        proto = getattr(value, f"{level.kind}_value")
        proto.SetInParent()
        for item in items:
            _encode(item, proto.values.add())
        return
    value.dict_value.SetInParent()
    for key, item in zip(level.keys, items, strict=True):
        _encode(item, value.dict_value.fields[key])


def _encode_leaf(spec: Any, value: Any) -> None:
    bounded = hasattr(spec, "minimum")
    proto = value.bounded_tensor_spec_value if bounded else value.tensor_spec_value
    proto.shape.CopyFrom(tf.TensorShape(spec.shape).as_proto())
    proto.dtype = tf.as_dtype(spec.dtype).as_datatype_enum
    proto.name = spec.name or ""
    if bounded:
        proto.minimum.CopyFrom(tf.make_tensor_proto(spec.minimum))
        proto.maximum.CopyFrom(tf.make_tensor_proto(spec.maximum))


def _decode_list(proto: Any) -> Any:
    return _join("list", proto.values)


def _decode_tuple(proto: Any) -> Any:
    return _join("tuple", proto.values)


def _decode_dict(proto: Any) -> Any:
    return _join("dict", proto.fields.values(), keys=tuple(proto.fields))


def _decode_named_tuple(proto: Any) -> Any:
    keys = tuple(pair.key for pair in proto.values)
    values = [pair.value for pair in proto.values]
    return _join("namedtuple", values, keys=keys, name=proto.name)


def _join(kind: str, values: Iterable[Any], **level: Any) -> Any:
    items = [from_proto(value) for value in values]
    return nest_levels.join(nest_levels.Level(kind, **level), items)


def _decode_tensor_spec(proto: Any) -> tf.TensorSpec:
    shape = tf.TensorShape(proto.shape)
    return tf.TensorSpec(shape, tf.as_dtype(proto.dtype), proto.name or None)


def _decode_bounded_tensor_spec(proto: Any) -> BoundedTensorSpec:
    return BoundedTensorSpec(
        tf.TensorShape(proto.shape),
        tf.as_dtype(proto.dtype),
        tf.make_ndarray(proto.minimum),
        tf.make_ndarray(proto.maximum),
        proto.name or None,
    )


_DECODERS: dict[str | None, Callable[[Any], Any]] = {
    "list_value": _decode_list,
    "tuple_value": _decode_tuple,
    "dict_value": _decode_dict,
    "named_tuple_value": _decode_named_tuple,
    "tensor_spec_value": _decode_tensor_spec,
    "bounded_tensor_spec_value": _decode_bounded_tensor_spec,
}


def save_spec(spec: Any, file_path: str) -> None:
    """Writes a nest of specs as a `StructuredValue`, making its folder if needed.

    Array specs are written as tensor specs; bounds are kept. TF-Agents can read the
    file.

    Raises:
      TypeError: If the nest holds anything but specs of dense tensors and arrays.
    """
    proto = to_proto(spec)
    folder = os.path.dirname(file_path)
    if folder:
        tf.io.gfile.makedirs(folder)
    with tf.io.gfile.GFile(file_path, "wb") as file:
        file.write(proto.SerializeToString())


def load_spec(file_path: str) -> Any:
    """Reads a nest of tensor specs from a file that `save_spec` wrote.

    A named tuple is read as a new class with the same name and fields. For example,
    `Trajectory(*load_spec(path))` converts the result to a `Trajectory`.

    Raises:
      ValueError: If the file does not hold specs, for example because it is damaged.
    """
    with tf.io.gfile.GFile(file_path, "rb") as file:
        content = file.read()
    with explained(file_path):
        return from_proto(internals.structured_value().FromString(content))
