"""Functions that summarise layers and list their variables."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import internals
from tfrl.utils import keras_versions, mixins
from tfrl.utils import variables as variables_lib


def print_summary(
    model: keras.layers.Layer,
    line_length: int | None = None,
    positions: Sequence[float] | None = None,
    print_fn: Callable[[str], Any] | None = None,
    expand_nested: bool = False,
    show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> None:
    """Prints a table of the layers inside a built layer, and the parameter counts.

    Args:
      model: A Keras layer, model or Network.
      line_length: The width of the table.
      positions: The end of each column, as fractions of the width or in characters.
      print_fn: The function that prints a line; by default `print`.
      expand_nested: Whether to list layers inside layers too.
      show_trainable: Whether to add a column that shows which layers are trained.
      layer_range: The names of the first and the last layer to list, or regular
        expressions that match the names.

    Raises:
      ValueError: If no layers match `layer_range`, or `positions` are too few.
    """
    write = print_fn or print
    titles = ["Layer (type)", "Variables", "Param #"]
    if show_trainable:
        titles.append("Trainable")
    width = line_length or (80 if show_trainable else 65)
    ends = _column_ends(positions, width, len(titles))
    write(f"{type(model).__name__} {model.name!r}")
    write("_" * width)
    write(_row(titles, ends))
    write("=" * width)
    for layer, depth in _rows(model, expand_nested, layer_range):
        fields = [
            f"{'  ' * depth}{layer.name} ({type(layer).__name__})",
            " ".join(str(tuple(v.shape)) for v in layer.variables) or "-",
            f"{_count(layer.variables):,}" if layer.built else "0 (unused)",
            "Y" if layer.trainable else "N",
        ]
        write(_row(fields[: len(titles)], ends))
    write("=" * width)
    total, trained = _count(model.variables), _count(model.trainable_variables)
    write(f"parameters: {total:,}")
    write(f"trainable parameters: {trained:,}")
    write(f"non-trainable parameters: {total - trained:,}")


def _rows(
    model: keras.layers.Layer, expand_nested: bool, layer_range: Sequence[str] | None
) -> Iterator[tuple[keras.layers.Layer, int]]:
    """Returns the layers to list, with their depth."""
    layers = _children(model)
    if layer_range is not None:
        layers = layers[_range(layers, layer_range)]
    for layer in layers:
        yield layer, 0
        if expand_nested:
            for inner, depth in _rows(layer, True, None):
                yield inner, depth + 1


def _children(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    return internals.flatten_layers(layer, include_self=False, recursive=False)


def _range(layers: list[keras.layers.Layer], names: Sequence[str]) -> slice:
    first, last = names
    starts = [i for i, x in enumerate(layers) if re.fullmatch(first, x.name)]
    ends = [i for i, x in enumerate(layers) if re.fullmatch(last, x.name)]
    if not starts or not ends:
        raise ValueError(
            f"layer_range: got {list(names)}, expected names or patterns of two of "
            f"{[x.name for x in layers]}; choose from those."
        )
    return slice(min(starts[0], ends[-1]), max(starts[0], ends[-1]) + 1)


def _column_ends(
    positions: Sequence[float] | None, width: int, num_columns: int
) -> list[int]:
    if positions is None:
        positions = (0.45, 0.8, 1.0) if num_columns == 3 else (0.4, 0.7, 0.85, 1.0)
    if len(positions) < num_columns:
        raise ValueError(
            f"positions: got {list(positions)}, expected {num_columns}, one for each "
            "column; add the others."
        )
    scale = width if positions[-1] <= 1 else 1
    return [int(scale * position) for position in positions]


def _row(fields: Sequence[str], ends: Sequence[int]) -> str:
    line = ""
    for field, end in zip(fields, ends, strict=False):
        line = f"{line}{field} ".ljust(end)
    return line.rstrip()


def _count(variables: Sequence[Any]) -> int:
    return sum(math.prod(v.shape) for v in variables)


def losses_of(layers: Sequence[keras.layers.Layer]) -> list[tf.Tensor]:
    """Returns the losses that layers add, scalars, those of a shared layer once.

    They are those of regularizers, and of the layers' last calls; see
    `keras.layers.Layer.losses`.
    """
    together = keras.layers.Layer(name="together")
    together.parts = list(layers)
    losses: list[tf.Tensor] = together.losses
    return losses


def tf_variables(layer: keras.layers.Layer) -> list[tf.Variable]:
    """Returns the variables that Keras ignores, among a layer's attributes.

    These are `tf.Variable`s, and the variables of `tf.Module`s, such as Sonnet's.
    """
    found: dict[int, tf.Variable] = {}
    for part in internals.flatten_layers(layer):
        for value in vars(part).values():
            for entry in value if isinstance(value, list | tuple) else (value,):
                if isinstance(entry, tf.Variable):
                    found[id(entry)] = entry
                elif isinstance(entry, tf.Module):
                    # Sonnet's own property is an error if there are none.
                    of_module = tf.Module.variables.fget(entry)
                    found.update({id(variable): variable for variable in of_module})
    return list(found.values())


class LayerVariables(mixins.Untracked, tf.Module):
    """Variables of Keras layers, where a `tf.Module` that holds this finds them.

    They are in checkpoints by the layers themselves.
    """

    def __init__(self, layers: Sequence[keras.layers.Layer]) -> None:
        """Takes the layers; those without variables yet are left out."""
        super().__init__()
        built = [layer for layer in layers if layer.built]
        found = [variable for layer in built for variable in layer.variables]
        self._set_untracked("_layers", list(layers))
        self._set_untracked("_found", variables_lib.as_tf_variables(found))

    def __deepcopy__(self, memo: dict[int, Any]) -> LayerVariables:
        """Returns the variables of the copies of the layers."""
        return LayerVariables(copy.deepcopy(self._layers, memo))


def adopt_layers(module: tf.Module) -> None:
    """Makes a module and its submodules find the variables of Keras layers in them.

    `tf.Module.variables` ignores such layers, and so do Sonnet's modules. Call this
    when the layers have their variables.
    """
    for part in (module, *module.submodules):
        layers = [] if isinstance(part, LayerVariables) else _layers_among(vars(part))
        if layers:
            # Past the tracking of `tf.Module`.
            object.__setattr__(part, "variables_of_layers", LayerVariables(layers))


def layers_in_module(module: tf.Module) -> list[keras.layers.Layer]:
    """Returns the Keras layers in a `tf.Module` and its submodules."""
    parts = [_layers_among(vars(part)) for part in (module, *module.submodules)]
    layers = {id(layer): layer for part in parts for layer in part}
    return list(layers.values())


def _layers_among(attributes: dict[str, Any]) -> list[keras.layers.Layer]:
    leaves = [leaf for value in attributes.values() for leaf in tf.nest.flatten(value)]
    layers = {id(x): x for x in leaves if isinstance(x, keras.layers.Layer)}
    return list(layers.values())


def check_no_keras_2(layer: keras.layers.Layer) -> None:
    """Raises a TypeError if a layer or a layer in it has an attribute of Keras 2."""
    for part in internals.flatten_layers(layer):
        for name, value in vars(part).items():
            # TensorFlow keeps the attributes that it saves under other names, too.
            if not name.startswith("_self_"):
                for entry in _entries(value):
                    keras_versions.check(entry, f"{part.name}.{name}")


def _entries(value: Any) -> Iterator[Any]:
    """Yields a value, or the values in nested lists, tuples and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _entries(entry)
    else:
        yield value
