"""Reads trained weights of TF-Agents and of Acme into networks of tfrl.

Checkpoints of TensorFlow hold the graph of the objects that were saved. A network is
found in it by its layers: their order, and the names and shapes of their variables.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals
from tfrl.migrate import names
from tfrl.savers import checkpoint_files

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# Sonnet's names of variables, and Keras's.
_KERAS: dict[str, str] = names.TABLES["sonnet_variables"]
# What a layer of Keras 2 lists beside the attributes that hold its parts.
_LISTS = {"variables", "trainable_variables", "keras_api"}
# A layer: its variables by their names in Keras, each with its place and its shape.
_Layer = dict[str, tuple[Any, tuple[int, ...]]]


def load(network: Any, path: str | os.PathLike[str], name: str = "") -> dict[str, str]:
    """Reads weights that TF-Agents or Acme have saved into the same network built here.

    Among networks of the same shapes those win whose names have no "target".

    >>> import tempfile, keras, tensorflow as tf
    >>> from tfrl.migrate import weights
    >>> saved, network = (keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    ...                   for _ in range(2))
    >>> path = tf.train.Checkpoint(policy=tf.train.Checkpoint(
    ...     kernel=saved.weights[0].value, bias=saved.weights[1].value
    ... )).save(tempfile.mkdtemp() + "/ckpt")
    >>> sorted(weights.load(network, path).values())
    ['policy/bias', 'policy/kernel']

    Args:
      network: A network, a layer or a model, with the layers of the saved one. A
        network that is not built makes them.
      path: The folder of a checkpoint, of a saved policy or of a snapshot; or the
        path of a checkpoint, without `.index`.
      name: Part of the network's name or path, for folders with several of its
        shapes, such as `_critic_network_1`.

    Returns:
      The names of the saved variables by the paths of the network's.

    Raises:
      ValueError: There is no checkpoint, or no network with these layers, or several;
        nothing was read.
    """
    if not network.built and hasattr(network, "create_variables"):
        network.create_variables()
    weights = [x for x in network.variables if tf.as_dtype(x.dtype).is_floating]
    if not weights:
        raise ValueError(
            f"network: got {type(network).__name__} without variables, expected them; "
            "call it with an observation first."
        )
    expected = _layers((_name(x), x, tuple(x.shape)) for x in weights)
    reader, saved = _read(os.fspath(path))
    known = [each for each in saved.items() if name in each[0]]
    fitting: dict[tuple[str, ...], str] = {}
    for where, layers in known:
        keys = tuple(key for _, key in _paired(expected, layers))
        fitting.setdefault(keys, where)  # The shortest path comes first.
    fitting.pop((), None)
    if "target" not in name:
        main = {k: v for k, v in fitting.items() if "target" not in f"{v}{k}".lower()}
        fitting = main or fitting
    if not fitting:
        raise ValueError(_difference(expected, known, path, name))
    if len(fitting) > 1:
        raise ValueError(
            f"name: got {name!r}, which fits {', '.join(fitting.values())}; expected "
            "part of one."
        )
    pairs = _paired(expected, saved[next(iter(fitting.values()))])
    for variable, key in pairs:
        variable.assign(tf.cast(reader.get_tensor(key + _SUFFIX), variable.dtype))
    return {_name(variable): key for variable, key in pairs}


def _name(variable: Any) -> str:
    return getattr(variable, "path", None) or variable.name.partition(":")[0]


def _kind(name: str) -> str:
    name = name.lstrip("_")
    return _KERAS.get(name, name)


def _layers(variables: Any) -> list[_Layer]:
    """Returns the layers of variables with full names, places and shapes."""
    layers: list[_Layer] = []
    newest: dict[str, _Layer] = {}
    for full_name, place, shape in variables:
        parent, _, kind = full_name.rpartition("/")
        kind = _kind(kind)
        if parent not in newest or kind in newest[parent]:
            newest[parent] = {}
            layers.append(newest[parent])
        newest[parent][kind] = place, shape
    return layers


def _read(path: str) -> tuple[Any, dict[str, list[_Layer]]]:
    """Returns a checkpoint's reader, and the layers below each object in it.

    Raises:
      ValueError: There is no such checkpoint.
    """
    inside = os.path.join(path, "variables", "variables")
    found = inside if os.path.isfile(f"{inside}.index") else path
    try:
        reader = tf.train.load_checkpoint(found)
        graph = internals.checkpointed_objects()
        graph.ParseFromString(reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"))
    except checkpoint_files.READING_ERRORS as error:
        raise ValueError(
            f"path: got {path}, expected the folder of a checkpoint of TensorFlow 2, a "
            f"saved policy or a snapshot: {error}"
        ) from None
    return reader, _networks(graph.nodes, reader.get_variable_to_shape_map())


def _networks(nodes: Any, shapes: dict[str, Any]) -> dict[str, list[_Layer]]:
    """Returns the layers below each object of a checkpoint, by the object's path."""
    paths = {0: ""}
    for number in (queue := [0]):  # It grows.
        for child in nodes[number].children:
            if child.node_id not in paths and child.local_name not in _LISTS:
                path = f"{paths[number]}/{child.local_name}".lstrip("/")
                paths[child.node_id] = path
                queue.append(child.node_id)
    found: dict[str, list[_Layer]] = {}
    for number, path in paths.items():
        if "optimizer" in path.lower():
            continue
        found[path] = list(_below(nodes, shapes, number, set()))
        listed = list(_variables(nodes, shapes, number, is_list=True))
        for root in dict.fromkeys(name.partition("/")[0] for _, name, *_ in listed):
            part = [x[1:] for x in listed if x[1].partition("/")[0] == root]
            found.setdefault(f"{path}: {root}", _layers(part))
    return found


def _below(
    nodes: Any, shapes: dict[str, Any], number: int, seen: set[int]
) -> Iterator[_Layer]:
    """Yields the layers of an object and of its parts, in the parts' order."""
    if number in seen:
        return
    seen.add(number)
    own = _variables(nodes, shapes, number, is_list=False)
    layer = {_kind(attribute): (key, shape) for attribute, _, key, shape in own}
    listed = _variables(nodes, shapes, number, is_list=True)
    yield from [layer] if layer else _layers(x[1:] for x in listed)
    for child in nodes[number].children:
        if child.local_name not in _LISTS:
            yield from _below(nodes, shapes, child.node_id, seen)


def _variables(
    nodes: Any, shapes: dict[str, Any], number: int, *, is_list: bool
) -> Iterator[tuple[str, str, str, tuple[int, ...]]]:
    """Yields an object's variables: their attributes, full names, keys and shapes.

    Those of a list have numbers for attributes.
    """
    for child in nodes[number].children:
        if child.local_name.isdigit() is is_list and child.local_name not in _LISTS:
            for each in nodes[child.node_id].attributes:
                if (key := each.checkpoint_key) in shapes:
                    place, shape = key.removesuffix(_SUFFIX), tuple(shapes[key])
                    yield child.local_name, each.full_name, place, shape


def _shapes(layer: _Layer) -> tuple[Any, ...]:
    return tuple(sorted((kind, shape) for kind, (_, shape) in layer.items()))


def _paired(expected: list[_Layer], saved: list[_Layer]) -> list[tuple[Any, str]]:
    """Returns the variables with the keys of saved ones; none if these do not fit.

    The layers of a list may have another order, by the names of attributes: layers of
    the same shapes keep theirs.
    """
    if sorted(map(_shapes, expected)) != sorted(map(_shapes, saved)):
        return []
    ordered = [sorted(layers, key=_shapes) for layers in (expected, saved)]
    return [
        (variable, there[kind][0])
        for here, there in zip(*ordered, strict=True)
        for kind, (variable, _) in here.items()
    ]


def _difference(
    expected: list[_Layer], known: list[tuple[str, list[_Layer]]], path: Any, name: str
) -> str:
    """Returns what does not fit in the object that fits best."""

    def fits(each: tuple[str, list[_Layer]]) -> tuple[int, int]:
        same = zip(map(_shapes, expected), map(_shapes, each[1]), strict=False)
        number = len(list(itertools.takewhile(lambda x: x[0] == x[1], same)))
        return number, -abs(len(each[1]) - len(expected))

    where, layers = max(known, key=fits, default=("", []))
    lines = []
    none: _Layer = {}
    for here, there in itertools.zip_longest(expected, layers, fillvalue=none):
        for kind in dict.fromkeys([*here, *there]):
            variable, shape = here.get(kind, (None, None))
            key, given = there.get(kind, ("", None))
            if shape != given:
                own = _name(variable) if variable is not None else "no variable"
                lines.append(f"{own}: got {given} of {key or 'none'}, expected {shape}")
    return (
        f"{path}: nothing with {name!r} in its name has the network's layers; the "
        f"nearest is {where or 'the whole'}:\n" + "\n".join(lines)
    )
