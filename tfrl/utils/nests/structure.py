"""Compares nests, names their leaves by path, and prunes extra keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tree

flatten_up_to = tree.flatten_up_to
flatten_with_tuple_paths = tree.flatten_with_path
map_structure_up_to = tree.map_structure_up_to


def map_structure_with_paths(func: Callable[..., Any], *structures: Any) -> Any:
    """Maps `func(path, *leaves)` over nests of one structure; the path is `"a/b"`."""
    return tree.map_structure_with_path(
        lambda path, *leaves: func(_join_path(path), *leaves), *structures
    )


def flatten_with_joined_paths(
    structure: Any, expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """Returns `(path, leaf)` pairs in the order of `tf.nest.flatten`; paths as `"a/b"`.

    With `expand_composites` the components of a sparse or ragged tensor are numbered
    leaves of their own.
    """
    pairs = tree.flatten_with_path(structure)
    if expand_composites:
        pairs = [pair for path, leaf in pairs for pair in _components(path, leaf)]
    return [(_join_path(path), leaf) for path, leaf in pairs]


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True
) -> None:
    """Checks that `input_tree` has at least the structure of `shallow_tree`.

    Args:
      shallow_tree: A nest.
      input_tree: A nest that may have further nests where it has leaves.
      check_types: Whether the types of the containers must match, too.

    Raises:
      TypeError: If the types of two containers differ.
      ValueError: If the structures differ.
    """
    tree.flatten_up_to(shallow_tree, input_tree, check_types=check_types)


def assert_same_structure(
    nest1: Any,
    nest2: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    allow_shallow_nest1: bool = False,
    message: str | None = None,
) -> None:
    """Checks that two nests have the same structure; the error shows both.

    Args:
      nest1: A nest.
      nest2: A nest.
      check_types: Whether the types of the containers must agree as well.
      expand_composites: Whether sparse and ragged tensors are compared by component.
      allow_shallow_nest1: Whether a leaf of `nest1` may stand for a nest in `nest2`.
      message: The first line of the error.

    Raises:
      ValueError: If the nests differ in structure.
      TypeError: If they differ in the type of a container.
    """
    try:
        if allow_shallow_nest1:
            tree.flatten_up_to(nest1, nest2, check_types=check_types)
        else:
            tf.nest.assert_same_structure(
                nest1,
                nest2,
                check_types=check_types,
                expand_composites=expand_composites,
            )
    except (TypeError, ValueError) as error:
        paths = [
            {path for path, _ in flatten_with_joined_paths(nest)}
            for nest in (nest1, nest2)
        ]
        # A new error, since TensorFlow's own prints every value before the reason.
        raise type(error)(
            f"{message or 'The two structures do not match'}:\n"
            f"  {_outline(nest1)}\nvs.\n  {_outline(nest2)}\n"
            f"Leaves only in the first: {sorted(paths[0] - paths[1])}; only in the "
            f"second: {sorted(paths[1] - paths[0])}. Give both the same containers "
            "and keys."
        ) from None


def fast_map_structure(
    func: Callable[..., Any], *structure: Any, expand_composites: bool = False
) -> Any:
    """Maps `func` over nests, without a check that their structures agree."""
    flat = [
        tf.nest.flatten(nest, expand_composites=expand_composites) for nest in structure
    ]
    return fast_map_structure_flatten(
        func, structure[0], *flat, expand_composites=expand_composites
    )


def fast_map_structure_flatten(
    func: Callable[..., Any],
    structure: Any,
    *flat_structure: Any,
    expand_composites: bool = False,
) -> Any:
    """Maps `func` over flat lists and packs the results like `structure`."""
    return tf.nest.pack_sequence_as(
        structure,
        [func(*leaves) for leaves in zip(*flat_structure, strict=True)],
        expand_composites=expand_composites,
    )


def has_tensors(*x: Any) -> bool:
    """Whether any leaf of the nests is a tensor."""
    return any(map(tf.is_tensor, tf.nest.flatten(x)))


def safe_has_state(state: Any) -> bool:
    """Whether `state` is not None, `()` or `[]`."""
    # This is tested by identity and type, because comparing a tensor in a graph gives a
    # tensor.
    return state is not None and not (isinstance(state, tuple | list) and not state)


def prune_extra_keys(narrow: Any, wide: Any) -> Any:
    """Returns `wide` without dict keys that `narrow` lacks, at every level.

    Where the two do not match (a missing key, another length, another container), that
    part of `wide` is returned unchanged; a later `assert_same_structure` reports the
    mismatch. Where `narrow` is `()`, the result is `()`.
    """
    narrow, wide = _unwrap(narrow), _unwrap(wide)
    if isinstance(narrow, tuple) and not narrow:
        return narrow
    if isinstance(narrow, Mapping) and isinstance(wide, Mapping):
        return _prune_mapping(narrow, wide)
    if _alike_sequences(narrow, wide):
        items = [prune_extra_keys(n, w) for n, w in zip(narrow, wide, strict=True)]
        return type(wide)(*items) if hasattr(wide, "_fields") else type(wide)(items)
    return wide


def _prune_mapping(narrow: Mapping[Any, Any], wide: Mapping[Any, Any]) -> Any:
    if not narrow.keys() <= wide.keys():
        return wide
    pruned = {key: prune_extra_keys(narrow[key], wide[key]) for key in narrow}
    if isinstance(wide, defaultdict):
        return defaultdict(wide.default_factory, pruned)
    return type(wide)(pruned)  # type: ignore[call-arg]


def _alike_sequences(narrow: Any, wide: Any) -> bool:
    """Whether both are lists, tuples or namedtuples of the same fields and length."""
    for kind in (list, tuple):
        if isinstance(narrow, kind) and isinstance(wide, kind):
            fields = [getattr(x, "_fields", None) for x in (narrow, wide)]
            return len(narrow) == len(wide) and fields[0] == fields[1]
    return False


def _unwrap(nest: Any) -> Any:
    # tf.Module wraps the dicts and tuples that are set on it in proxies.
    if isinstance(nest, (Mapping, tuple)):
        return getattr(nest, "__wrapped__", nest)
    return nest


def _components(path: tuple[Any, ...], leaf: Any) -> list[tuple[tuple[Any, ...], Any]]:
    parts = tf.nest.flatten(leaf, expand_composites=True)
    if len(parts) == 1 and parts[0] is leaf:
        return [(path, leaf)]
    return [((*path, i), part) for i, part in enumerate(parts)]


def _join_path(path: tuple[Any, ...]) -> str:
    return "/".join(map(str, path))


class _Leaf:
    """Stands for a leaf in the outline of a nest."""

    def __repr__(self) -> str:
        return "."


def _outline(nest: Any) -> str:
    return str(tf.nest.map_structure(lambda _: _Leaf(), nest))
