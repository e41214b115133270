"""Encodes nests of arrays, numbers and text as bytes, for checkpoints.

The bytes are a header and an npz file. Its array `nest` holds the structure of the nest
as JSON in UTF-8, and the other arrays are the leaves. Nothing is pickled: reading bytes
from a file that somebody else wrote cannot run code.

>>> import numpy as np
>>> from tfrl.savers import serialization
>>> data = serialization.to_bytes({"place": np.arange(3), "seeds": (7, None)})
>>> serialization.from_bytes(data)
{'place': array([0, 1, 2]), 'seeds': (7, None)}
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfrl.specs import dtype_names, nest_levels

_HEADER = b"tfrl nest 1\n"
# The functions that read an array's header, by the versions that `np.savez` writes.
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_LARGEST_JSON_INT = 2**63
# Between the name of an array and its dtype, if files of NumPy do not name that.
_OF_DTYPE = "|"
_Path = tuple[Any, ...]


class UnsupportedValueError(TypeError):
    """Raised if a nest holds a value that is not an array, a number, text or None.

    Attributes:
      path: The path of the value, such as `("env", 0)`.
      kind: The type of the value.
    """

    def __init__(self, path: _Path, kind: type) -> None:
        """Creates the error.

        Args:
          path: The path of the value in the nest.
          kind: The type of the value.
        """
        self.path = path
        self.kind = kind
        super().__init__(
            f"nest{path_text(path)}: got a {kind.__module__}.{kind.__qualname__}, "
            "expected an array, a number, a string, bytes, None, or a nest of these "
            "in lists, tuples and dictionaries; convert it to such values."
        )


class UnreadableBytesError(ValueError):
    """Raised if bytes are not a whole result of `to_bytes`."""


def to_bytes(nest: Any) -> bytes:
    """Returns `nest` as bytes.

    Args:
      nest: Arrays, Python and NumPy numbers, strings, bytes and None, in lists, tuples,
        named tuples and mappings.

    Raises:
      UnsupportedValueError: If `nest` holds a value of another type.
    """
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_encode(nest, arrays, ()))
    arrays["nest"] = np.frombuffer(text.encode(), np.uint8)
    return _HEADER + pack_arrays(arrays)


def from_bytes(data: bytes) -> Any:
    """Returns the nest that `to_bytes` encoded; its arrays can be written to.

    Named tuples have their own classes if this process has imported them already, else
    new classes of the same name and fields.

    Raises:
      UnreadableBytesError: If `data` is not a whole result of `to_bytes`.
    """
    if not data.startswith(_HEADER):
        raise UnreadableBytesError(
            f"it begins with {data[:16]!r}, not with {_HEADER!r}"
        )
    try:
        arrays = unpack_arrays(data[len(_HEADER) :])
        return _decode(json.loads(arrays["nest"].tobytes()), arrays)
    except Exception as error:
        # Damaged bytes make zipfile, json and NumPy raise errors of many types.
        raise UnreadableBytesError(
            f"it is damaged ({type(error).__name__}: {error})"
        ) from error


def is_storable(nest: Any) -> bool:
    """Returns whether `to_bytes` can encode `nest`."""
    try:
        _encode(nest, {}, ())
    except UnsupportedValueError:
        return False
    return True


def path_text(path: _Path) -> str:
    """Returns a path as Python would write it, such as `['env'][0]`."""
    return "".join(f"[{key!r}]" for key in path)


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Returns arrays as the bytes of an npz file.

    Raises:
      ValueError: If an array holds objects.
    """
    file = io.BytesIO()
    named = dict(_in_words(name, array) for name, array in arrays.items())
    np.savez(file, allow_pickle=False, **named)
    return file.getvalue()


def unpack_arrays(data: bytes) -> dict[str, np.ndarray]:
    """Returns the arrays of an npz file, by name.

    Raises:
      ValueError: If an array holds objects, which are pickles, or is damaged, or is
        compressed, as `pack_arrays` writes none.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        named = sum(member.file_size for member in archive.infolist())
        if named > len(data):
            raise ValueError(
                f"its arrays have {named:,} bytes, and the whole file has {len(data):,}"
            )
        for member in archive.infolist():
            with archive.open(member) as opened:
                _check_header(opened, member)
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return dict(_from_words(name, array) for name, array in file.items())


def _in_words(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    """Returns the name and the array of a file of NumPy for an array of any dtype."""
    if array.dtype.isbuiltin != 2:
        return name, array
    # A type of ml_dtypes, such as bfloat16.
    name = f"{name}{_OF_DTYPE}{dtype_names.dtype_name(array.dtype)}"
    return name, array.view(f"u{array.dtype.itemsize}")


def _from_words(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    """Returns the name and the array for which `_in_words` returned these."""
    name, _, dtype = name.partition(_OF_DTYPE)
    return name, array.view(dtype_names.dtype_from_name(dtype)) if dtype else array


def _check_header(opened: Any, member: zipfile.ZipInfo) -> None:
    """Raises a ValueError if a file is no array, or its header names more than it has.

    NumPy allocates an array before it reads the values.
    """
    try:
        read = _HEADERS[np.lib.format.read_magic(opened)]
    except (KeyError, ValueError):
        raise ValueError(f"{member.filename!r} is not an array") from None
    shape, _, dtype = read(opened)
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(f"{member.filename!r} says that its shape is {shape}")


def _encode(value: Any, arrays: dict[str, np.ndarray], path: _Path) -> Any:
    """Returns `value` as JSON, and adds its arrays to `arrays`."""
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, arrays, path)
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return value
    if kind is int:
        return value if abs(value) < _LARGEST_JSON_INT else {"int": hex(value)}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind is bytes:
        return {"bytes": _add(np.frombuffer(value, np.uint8), arrays)}
    split = nest_levels.split(value)
    if split is None:
        raise UnsupportedValueError(path, kind)
    level, items = split
    encoded = [
        _encode(item, arrays, (*path, level.path_of(i))) for i, item in enumerate(items)
    ]
    if level.kind in ("list", "tuple"):
        return {level.kind: encoded}
    keys = [_encode(key, arrays, (*path, key)) for key in level.keys]
    result = {level.kind: [list(pair) for pair in zip(keys, encoded, strict=True)]}
    if level.kind == "namedtuple":
        return {**result, "name": level.name, "module": level.module}
    return result


def _encode_array(
    value: np.ndarray | np.generic, arrays: dict[str, np.ndarray], path: _Path
) -> Any:
    tag = "array" if isinstance(value, np.ndarray) else "scalar"
    array = np.asarray(value)
    if isinstance(value, np.ma.MaskedArray):
        raise UnsupportedValueError(path, type(value))
    if array.dtype == object:
        # Text that TensorFlow returned.
        items = [_encode(v, arrays, (*path, i)) for i, v in enumerate(array.flat)]
        return {"objects": items, "shape": list(array.shape)}
    if array.dtype.hasobject:
        raise UnsupportedValueError(path, type(value))
    if array.dtype.isbuiltin != 2:
        return {tag: _add(array, arrays)}
    # A type of ml_dtypes, such as bfloat16, which files of NumPy do not name.
    words = array.view(f"u{array.dtype.itemsize}")
    return {tag: _add(words, arrays), "dtype": dtype_names.dtype_name(array.dtype)}


def _add(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    name = str(len(arrays))
    arrays[name] = array
    return name


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    tag = next(iter(value))
    return _DECODERS[tag](value[tag], value, arrays)


def _decode_array(name: str, node: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    array = arrays[name]
    if "dtype" in node:
        array = array.view(dtype_names.dtype_from_name(node["dtype"]))
    return array


def _decode_objects(items: Any, node: Any, arrays: dict[str, np.ndarray]) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = [_decode(item, arrays) for item in items]
    return array.reshape(node["shape"])


def _decode_sequence(items: Any, node: Any, arrays: dict[str, np.ndarray]) -> Any:
    level = nest_levels.Level(next(iter(node)))
    return nest_levels.join(level, [_decode(item, arrays) for item in items])


def _decode_pairs(pairs: Any, node: Any, arrays: dict[str, np.ndarray]) -> Any:
    keys = tuple(_decode(key, arrays) for key, _ in pairs)
    level = nest_levels.Level(
        next(iter(node)), keys, node.get("name", ""), node.get("module")
    )
    return nest_levels.join(level, [_decode(item, arrays) for _, item in pairs])


_Decoder = Callable[[Any, Any, dict[str, np.ndarray]], Any]
_DECODERS: Mapping[str, _Decoder] = {
    "int": lambda text, *_: int(text, 16),
    "complex": lambda parts, *_: complex(*parts),
    "bytes": lambda name, _, arrays: arrays[name].tobytes(),
    "array": _decode_array,
    "scalar": lambda *of_array: _decode_array(*of_array)[()],
    "objects": _decode_objects,
    "list": _decode_sequence,
    "tuple": _decode_sequence,
    "dict": _decode_pairs,
    "ordered_dict": _decode_pairs,
    "namedtuple": _decode_pairs,
}
