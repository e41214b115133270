"""Nests of specs as JSON: what a table's signature is on its way to a server.

A leaf is an object with a "dtype" and a "shape", whose dimensions may be null, or which
is null itself if nothing is known of it; "name", "minimum" and "maximum" are there if
the spec has them. Around the leaves are `{"dict": {...}}` (pairs in a list where keys
are not strings), `{"ordered_dict": ...}`, `{"list": [...]}`, `{"tuple": [...]}` and
`{"namedtuple": name, "module": ..., "fields": [...], "values": [...]}`.

Neither encoding nor `leaves` needs TensorFlow; `decode` imports it.
"""

from __future__ import annotations

import collections
import functools
import keyword
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service.transport import wire


class Leaf(NamedTuple):
    """A spec of one tensor.

    Attributes:
      shape: Its dimensions, None where any will do; None if not even their number is
        known.
      dtype: The dtype's name, as in `wire.dtype_name`.
      name: What it is called, or None.
      minimum: Inclusive, a number or nested lists of them; None if it has no bounds.
      maximum: Likewise.
      path: Where it is in the nest.
    """

    shape: tuple[int | None, ...] | None
    dtype: str
    name: str | None = None
    minimum: Any = None
    maximum: Any = None
    path: tuple[Any, ...] = ()


def encode(nest: Any) -> Any:
    """Returns what `json` can write of a nest of specs.

    Args:
      nest: Specs of tensors or arrays, in mappings with keys that are strings or
        integers, in lists, tuples and named tuples.

    Raises:
      ValueError: If a leaf is no spec, or one of values that are not numbers.
    """
    return _encode(nest, ())


def decode(value: Any, make_leaf: Callable[[Leaf], Any] | None = None) -> Any:
    """Returns the nest that `encode` was given, of tensor specs.

    Named tuples are of their own classes if this process has imported these already,
    else of new ones that have the same name and fields.

    Args:
      value: What `encode` returned.
      make_leaf: Called with each `Leaf`; by default makes `tf.TensorSpec`s and, of
        those that have bounds, `BoundedTensorSpec`s.

    Raises:
      ValueError: If `value` is nothing that `encode` returns.
    """
    return _decode(value, make_leaf or _as_tensor_spec, ())


def leaves(value: Any) -> list[Leaf]:
    """Returns the leaves of what `encode` returned, in the order of `tf.nest`.

    Raises:
      ValueError: If `value` is nothing that `encode` returns.
    """
    return list(_flatten(decode(value, lambda leaf: leaf)))


def _encode(nest: Any, path: tuple[Any, ...]) -> Any:
    if isinstance(nest, Mapping):
        kind = "ordered_dict" if isinstance(nest, collections.OrderedDict) else "dict"
        return {kind: _encode_items(nest, path)}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return {
            "namedtuple": type(nest).__qualname__,
            "module": type(nest).__module__,
            "fields": list(nest._fields),
            "values": [
                _encode(item, (*path, field))
                for field, item in zip(nest._fields, nest, strict=True)
            ],
        }
    if isinstance(nest, list | tuple):
        kind = "list" if isinstance(nest, list) else "tuple"
        return {kind: [_encode(item, (*path, i)) for i, item in enumerate(nest)]}
    return _encode_leaf(nest, path)


def _encode_items(nest: Mapping[Any, Any], path: tuple[Any, ...]) -> Any:
    for key in nest:
        if not isinstance(key, str | int):
            raise ValueError(
                f"signature: got the key {key!r} at {path}, expected strings or "
                "integers."
            )
    items = [(key, _encode(item, (*path, key))) for key, item in nest.items()]
    if all(isinstance(key, str) for key, _ in items):
        return dict(items)
    return [list(item) for item in items]


def _encode_leaf(spec: Any, path: tuple[Any, ...]) -> dict[str, Any]:
    is_spec = all(hasattr(spec, field) for field in ("shape", "dtype", "name"))
    # Tensors have all that, too; specs of ragged or sparse ones have no name.
    if not is_spec or hasattr(spec, "__array__"):
        raise ValueError(
            f"Unsupported signature spec: {spec!r} of type {type(spec).__name__} at "
            f"{path}, expected specs of tensors in mappings, lists and tuples; "
            "describe an array with tf.TensorSpec(array.shape, array.dtype)."
        )
    try:
        dtype = np.dtype(getattr(spec.dtype, "as_numpy_dtype", spec.dtype))
        name = wire.dtype_name(dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Unsupported signature spec: {spec!r} at {path}: {error}"
        ) from None
    result: dict[str, Any] = {"shape": _shape_of(spec), "dtype": name}
    if getattr(spec, "name", None) is not None:
        result["name"] = str(spec.name)
    for bound in ("minimum", "maximum"):
        if getattr(spec, bound, None) is not None:
            result[bound] = _encode_bound(np.asarray(getattr(spec, bound)))
    return result


def _shape_of(spec: Any) -> list[int | None] | None:
    if getattr(spec.shape, "rank", 0) is None:  # A tf.TensorShape of unknown rank.
        return None
    return [None if size is None else int(size) for size in spec.shape]


def _encode_bound(bound: np.ndarray) -> Any:
    # Bounds broadcast, and those of images are all alike.
    if bound.size > 1 and (bound == bound.flat[0]).all():
        bound = bound.reshape(-1)[0]
    if bound.dtype.kind not in "biu":
        bound = bound.astype(np.float64)  # bfloat16, which has no numbers in Python.
    return bound.tolist()


def _decode(value: Any, make_leaf: Callable[[Leaf], Any], path: tuple[Any, ...]) -> Any:
    if not isinstance(value, dict):
        raise _broken(value, path)
    if "dtype" in value:
        return make_leaf(_decode_leaf(value, path))
    if "namedtuple" in value:
        fields = value.get("fields")
        items = _decode_list(value.get("values"), make_leaf, path)
        return _namedtuple(value, fields, len(items), path)(*items)
    if len(value) != 1:
        raise _broken(value, path)
    ((kind, content),) = value.items()
    if kind == "list":
        return _decode_list(content, make_leaf, path)
    if kind == "tuple":
        return tuple(_decode_list(content, make_leaf, path))
    if kind not in ("dict", "ordered_dict"):
        raise _broken(value, path)
    items = _items_of(content, path)
    decoded = [(key, _decode(item, make_leaf, (*path, key))) for key, item in items]
    return dict(decoded) if kind == "dict" else collections.OrderedDict(decoded)


def _decode_list(
    content: Any, make_leaf: Callable[[Leaf], Any], path: tuple[Any, ...]
) -> list[Any]:
    if not isinstance(content, list):
        raise _broken(content, path)
    return [_decode(item, make_leaf, (*path, i)) for i, item in enumerate(content)]


def _items_of(content: Any, path: tuple[Any, ...]) -> list[Any]:
    if isinstance(content, dict):
        return list(content.items())
    if not isinstance(content, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int)
        for pair in content
    ):
        raise _broken(content, path)
    return content


def _decode_leaf(value: dict[str, Any], path: tuple[Any, ...]) -> Leaf:
    shape = value.get("shape")
    known = isinstance(shape, list) and all(
        size is None or (type(size) is int and size >= 0) for size in shape
    )
    if not (known or shape is None) or not isinstance(value["dtype"], str):
        raise _broken(value, path)
    return Leaf(
        None if shape is None else tuple(shape),
        wire.dtype_name(wire.dtype_from_name(value["dtype"])),
        value.get("name"),
        value.get("minimum"),
        value.get("maximum"),
        path,
    )


def _namedtuple(
    value: dict[str, Any], fields: Any, count: int, path: tuple[Any, ...]
) -> Any:
    name, module = value["namedtuple"], value.get("module")
    if (
        not isinstance(name, str)
        or not isinstance(fields, list)
        or len(fields) != count
        or not all(map(_is_field, fields))
        or len(set(fields)) != count
    ):
        raise _broken(value, path)
    # Nothing is imported for what a message says.
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if (
        isinstance(found, type)
        and issubclass(found, tuple)
        and getattr(found, "_fields", None) == tuple(fields)
    ):
        return found
    last = name.rpartition(".")[2]
    return _new_namedtuple(last if _is_field(last) else "Nest", tuple(fields))


@functools.lru_cache(maxsize=256)
def _new_namedtuple(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


def _is_field(name: Any) -> bool:
    return (
        isinstance(name, str)
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("_")
    )


def _flatten(nest: Any) -> Iterator[Leaf]:
    if isinstance(nest, Leaf):
        yield nest
    elif isinstance(nest, Mapping):
        for key in sorted(nest):
            yield from _flatten(nest[key])
    else:
        for item in nest:
            yield from _flatten(item)


def _as_tensor_spec(leaf: Leaf) -> Any:
    import tensorflow as tf

    dtype = tf.as_dtype(wire.dtype_from_name(leaf.dtype))
    if leaf.minimum is None and leaf.maximum is None:
        return tf.TensorSpec(leaf.shape, dtype, leaf.name)
    from tfrl.specs import bounded_tensor_spec

    return bounded_tensor_spec.BoundedTensorSpec(
        leaf.shape, dtype, leaf.minimum, leaf.maximum, leaf.name
    )


def _broken(value: Any, path: tuple[Any, ...]) -> ValueError:
    text = repr(value)
    if len(text) > 200:
        text = text[:200] + "..."
    return ValueError(
        f"signature: got {text} at {path}, expected an object with a shape and a "
        'dtype, or one of {"dict": {...}}, {"ordered_dict": ...}, {"list": [...]}, '
        '{"tuple": [...]} and {"namedtuple": name, "fields": [...], "values": [...]}.'
    )
