"""Encodes nests of specs as JSON, to send a table's signature to a replay server.

A leaf is an object with a "dtype" and a "shape". An unknown shape or dimension is null.
"name", "minimum" and "maximum" are present if the spec has them. The other nodes of the
nest are `{"dict": {...}}` (with a list of pairs if keys are not strings),
`{"ordered_dict": ...}`, `{"list": [...]}`, `{"tuple": [...]}` and
`{"namedtuple": name, "module": ..., "fields": [...], "values": [...]}`.

Neither encoding nor `leaves` needs TensorFlow; `decode` imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrl.specs import nest_levels
from tfrl.specs.dtype_names import dtype_from_name, dtype_name


class Leaf(NamedTuple):
    """The spec of one tensor.

    Attributes:
      shape: The dimensions, each None if unknown; None if the rank is unknown.
      dtype: The dtype's name, as in `dtype_names.dtype_name`.
      name: The name of the spec, or None.
      minimum: The inclusive lower bound, a number or nested lists; None without bounds.
      maximum: The inclusive upper bound, a number or nested lists; None without bounds.
      path: The path of the leaf in the nest.
    """

    shape: tuple[int | None, ...] | None
    dtype: str
    name: str | None = None
    minimum: Any = None
    maximum: Any = None
    path: tuple[Any, ...] = ()


def encode(nest: Any) -> Any:
    """Returns a nest of specs as a JSON value.

    Args:
      nest: Specs of tensors or arrays, in lists, tuples, named tuples, and mappings
        with strings or integers as keys.

    Raises:
      ValueError: If a leaf is not a spec of numbers.
    """
    return _encode(nest, ())


def decode(value: Any, make_leaf: Callable[[Leaf], Any] | None = None) -> Any:
    """Returns the nest of tensor specs of a JSON value that `encode` returned.

    Named tuples have their own classes if this process has imported them already, else
    new classes of the same name and fields.

    Args:
      value: The JSON value.
      make_leaf: Converts a `Leaf`; by default to a `tf.TensorSpec`, or a
        `BoundedTensorSpec` if it has bounds.

    Raises:
      ValueError: If `value` is not a possible result of `encode`.
    """
    return _decode(value, make_leaf or _as_tensor_spec, ())


def leaves(value: Any) -> list[Leaf]:
    """Returns the leaves of a result of `encode`, in the order of `tf.nest`.

    Raises:
      ValueError: If `value` is not a possible result of `encode`.
    """
    return list(_flatten(decode(value, lambda leaf: leaf)))


def _encode(nest: Any, path: tuple[Any, ...]) -> Any:
    taken_apart = nest_levels.split(nest)
    if taken_apart is None:
        return _encode_leaf(nest, path)
    level, items = taken_apart
    encoded = [_encode(item, (*path, level.path_of(i))) for i, item in enumerate(items)]
    if level.kind == "namedtuple":
        return {
            "namedtuple": level.name,
            "module": level.module,
            "fields": list(level.keys),
            "values": encoded,
        }
    if level.kind in ("list", "tuple"):
        return {level.kind: encoded}
    return {level.kind: _encode_items(level.keys, encoded, path)}


def _encode_items(
    keys: tuple[Any, ...], encoded: list[Any], path: tuple[Any, ...]
) -> Any:
    for key in keys:
        if not isinstance(key, str | int):
            raise ValueError(
                f"signature: got the key {key!r} at {path}, expected strings or "
                "integers."
            )
    if all(isinstance(key, str) for key in keys):
        return dict(zip(keys, encoded, strict=True))
    return [list(item) for item in zip(keys, encoded, strict=True)]


def _encode_leaf(spec: Any, path: tuple[Any, ...]) -> dict[str, Any]:
    is_spec = all(hasattr(spec, field) for field in ("shape", "dtype", "name"))
    # Tensors have these fields, too. Specs of ragged or sparse tensors have no name.
    if not is_spec or hasattr(spec, "__array__"):
        raise ValueError(
            f"Unsupported signature spec: {spec!r} of type {type(spec).__name__} at "
            f"{path}, expected specs of tensors in mappings, lists and tuples; "
            "describe an array with tf.TensorSpec(array.shape, array.dtype)."
        )
    try:
        dtype = np.dtype(getattr(spec.dtype, "as_numpy_dtype", spec.dtype))
        name = dtype_name(dtype)
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
    # The bounds of all elements are often equal; since bounds broadcast, one is enough.
    if bound.size > 1 and (bound == bound.flat[0]).all():
        bound = bound.reshape(-1)[0]
    if bound.dtype.kind not in "biu":
        bound = bound.astype(np.float64)  # bfloat16 does not convert to Python numbers.
    return bound.tolist()


def _decode(value: Any, make_leaf: Callable[[Leaf], Any], path: tuple[Any, ...]) -> Any:
    if not isinstance(value, dict):
        raise _broken(value, path)
    if "dtype" in value:
        return make_leaf(_decode_leaf(value, path))
    if "namedtuple" in value:
        items = _decode_list(value.get("values"), make_leaf, path)
        return nest_levels.join(_namedtuple_level(value, len(items), path), items)
    if len(value) != 1:
        raise _broken(value, path)
    ((kind, content),) = value.items()
    if kind in ("list", "tuple"):
        items = _decode_list(content, make_leaf, path)
        return nest_levels.join(nest_levels.Level(kind), items)
    if kind not in ("dict", "ordered_dict"):
        raise _broken(value, path)
    pairs = _pairs_of(content, path)
    items = [_decode(item, make_leaf, (*path, key)) for key, item in pairs]
    keys = tuple(key for key, _ in pairs)
    return nest_levels.join(nest_levels.Level(kind, keys), items)


def _decode_list(
    content: Any, make_leaf: Callable[[Leaf], Any], path: tuple[Any, ...]
) -> list[Any]:
    if not isinstance(content, list):
        raise _broken(content, path)
    return [_decode(item, make_leaf, (*path, i)) for i, item in enumerate(content)]


def _pairs_of(content: Any, path: tuple[Any, ...]) -> list[Any]:
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
        dtype_name(dtype_from_name(value["dtype"])),
        value.get("name"),
        value.get("minimum"),
        value.get("maximum"),
        path,
    )


def _namedtuple_level(
    value: dict[str, Any], count: int, path: tuple[Any, ...]
) -> nest_levels.Level:
    name, module, fields = value["namedtuple"], value.get("module"), value.get("fields")
    if (
        not isinstance(name, str)
        or not isinstance(fields, list)
        or len(fields) != count
        or not all(map(nest_levels.is_field, fields))
        or len(set(fields)) != count
    ):
        raise _broken(value, path)
    module = module if isinstance(module, str) else None
    return nest_levels.Level("namedtuple", tuple(fields), name, module)


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

    dtype = tf.as_dtype(dtype_from_name(leaf.dtype))
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
