"""Chooses how observations of any spec reach dense layers: convolutions for images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
import tree

from tfrl.networks import utils
from tfrl.networks.layers import preprocessing
from tfrl.specs import tensor_spec
from tfrl.typing import types
from tfrl.utils import actions

# The shortest side of an image. Dense layers do as well with smaller arrays.
_LEAST_SIDE = 5
# The widest range of an image's integers. Wider integers are numbers.
_WIDEST = 2**16 - 1
# The shortest side of an image for which the networks of Atari's agents are.
LARGE_SIDE = 36
# The convolutions for images whose shorter side has at least so many pixels. The first
# ones are from Mnih et al., "Human-level control through deep reinforcement learning"
# (2015).
_DEFAULTS = (
    (LARGE_SIDE, ((32, 8, 4), (64, 4, 2), (64, 3, 1))),
    (20, ((32, 4, 2), (64, 4, 2), (64, 3, 1))),
    (_LEAST_SIDE, ((16, 3, 1), (32, 3, 1))),
)

_Path = tuple[Any, ...]


def observation_encoder(
    observation_spec: types.NestedTensorSpec,
    *,
    conv_layer_params: Sequence[Any] | None = None,
    for_critic: bool = False,
    encoder: Any = None,
    activation_fn: utils.Activation = keras.activations.relu,
    kernel_initializer: Any = None,
    dtype: Any = "float32",
) -> dict[str, Any]:
    """Returns the arguments with which networks encode observations.

    Images go through convolutions, and all other observations become vectors by
    `default_preprocessing`. These observations are images, if they are at least 5
    pixels high and wide:

    - an array of three dimensions, `[height, width, channels]`, of uint8, of booleans,
      or of other numbers with bounds; integers may have up to 65,536 values;
    - a uint8 array `[height, width]`, which gets one channel;
    - a uint8 array `[frames, height, width, channels]`, such as Gymnasium's stacks of
      pictures, whose frames become channels.

    An array of three dimensions whose first is smaller than both others, such as `[4,
    84, 84]`, is `[channels, height, width]`: it is transposed. Integers and booleans
    are scaled to [0, 1] by their bounds. Floats stay as they are; an agent's
    `observation_normalizer` scales them.

    Without `conv_layer_params`, images whose shorter side has at least 36 pixels get
    the convolutions of Mnih et al. (2015), images from 20 to 35 pixels smaller kernels,
    and smaller images, such as MiniGrid's 7x7 cells, two convolutions of 3x3.

    Args:
      observation_spec: The nest of specs of one observation.
      conv_layer_params: `(filters, kernel_size, strides[, dilation_rate])` of each
        convolution of every image. If no observation is an image as above, any array of
        three dimensions is one. None chooses by the images' sizes; `()` makes no
        convolutions, so that images are flattened.
      for_critic: Whether the arguments are for `CriticNetwork`, `CriticEnsembleNetwork`
        or another network without `conv_layer_params`. The convolutions of a single
        image are then among the preprocessing layers; for a nest they always are.
      encoder: Your own Keras layer or model, in place of the convolutions and other
        layers here: for an observation that is one array; or a dict of them for leaves
        of a dict, as `{"camera": model}`, whose other leaves are encoded as usual; or
        one model for all leaves, a functional one whose inputs have the leaves' names,
        or one of your own class, which takes the dict. Images come to it scaled,
        `[height, width, channels]`, other floats as they are, and others as
        `default_preprocessing` leaves them. Each network has a copy, with weights of
        its own.
      activation_fn: The activation of convolutions in preprocessing layers; the network
        has one for the others.
      kernel_initializer: The initialiser of kernels in preprocessing layers; by default
        `EncodingNetwork`'s. Each network seeds its copies.
      dtype: The dtype of the layers, or a Keras dtype policy.

    Returns:
      The arguments `preprocessing_layers`, `preprocessing_combiner` and `dtype`, and
      for a single image also `conv_layer_params`, unless `for_critic`.

    Raises:
      TypeError: `encoder` is not a Keras layer or model.
      ValueError: There is no observation, or one is not of numbers or booleans; or
        `conv_layer_params` are given and there is no image, or their kernels are larger
        than an image; or the leaves of the observation and those of `encoder` differ.
    """
    observation_spec = tensor_spec.from_spec(observation_spec)
    convolved = _convolved(observation_spec, conv_layer_params)
    arguments = {"preprocessing_combiner": None, "dtype": dtype}
    if tf.nest.is_nested(observation_spec) and _is_model_of_nests(encoder):
        model = joined_model(encoder, observation_spec, _layers_before)
        return {
            **arguments,
            "preprocessing_layers": None,
            "preprocessing_combiner": model,
        }
    own = _own_encoders(encoder, observation_spec)
    if not (convolved or own):
        layers, combiner = preprocessing.default_preprocessing(observation_spec)
        return {
            **arguments,
            "preprocessing_layers": layers,
            "preprocessing_combiner": combiner,
        }
    if () in convolved and not (for_critic or own):
        layers = _pixel_layers(observation_spec)
        if len(layers) > 1:
            layers = [keras.Sequential(layers)]
        return {
            **arguments,
            "preprocessing_layers": layers[0] if layers else None,
            "conv_layer_params": convolved[()],
        }

    def make_layer(path: _Path, spec: tf.TensorSpec) -> keras.layers.Layer:
        if path in own:
            before = _layers_before(path, spec)
            return keras.Sequential([*before, own[path], keras.layers.Flatten()])
        if path not in convolved:
            return preprocessing.make_layer(path, spec)
        convolutions = utils.conv_layers(
            convolved[path],
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            seeds=None,
            dtype=utils.dtype_name(dtype),
        )
        return keras.Sequential(
            [*_pixel_layers(spec), *convolutions, keras.layers.Flatten()]
        )

    if len(tf.nest.flatten(observation_spec)) > 1:
        arguments["preprocessing_combiner"] = keras.layers.Concatenate()
    return {
        **arguments,
        "preprocessing_layers": tree.map_structure_with_path(
            make_layer, observation_spec
        ),
    }


def _is_model_of_nests(encoder: Any) -> bool:
    is_layer = isinstance(encoder, keras.layers.Layer)
    return is_layer and takes_nests(encoder)


def _layers_before(path: _Path, spec: tf.TensorSpec) -> list[keras.layers.Layer]:
    """Makes the layers before a program's own layer for an observation."""
    frame = _frame(spec)
    if frame is not None and _is_image(spec, frame):
        return _pixel_layers(spec)
    if spec.dtype.is_floating and spec.shape.rank:
        return []
    return [preprocessing.make_layer(path, spec)]


def _own_encoders(encoder: Any, observation_spec: Any) -> dict[_Path, Any]:
    """Returns the layers that a program gives, by the paths of what they encode."""
    if encoder is None:
        return {}
    leaves = tree.flatten_with_path(observation_spec)
    paths = {path[0] if len(path) == 1 else path: path for path, _ in leaves}
    given = encoder if isinstance(encoder, Mapping) else {(): encoder}
    for name, layer in given.items():
        if not isinstance(layer, keras.layers.Layer):
            raise TypeError(
                f"encoder: got a {type(layer).__name__}, expected a layer or a model "
                "of Keras, such as keras.Sequential([...]), or a dict of some."
            )
        if name not in paths:
            got = repr(name) if name else "one layer"
            known = ", ".join(map(str, paths))
            expected = (
                f"a dict for leaves of the observation, {known}, or a functional "
                "model with an input for each"
            )
            expected = "a layer alone, for one array" if () in paths else expected
            raise ValueError(f"encoder: got {got}, expected {expected}.")
    return {paths[name]: layer for name, layer in given.items()}


def describe(
    observation_spec: types.NestedTensorSpec,
    conv_layer_params: Sequence[Any] | None = None,
) -> str:
    """Returns a line that says what `observation_encoder` makes of an observation.

    Args:
      observation_spec: The nest of specs of one observation.
      conv_layer_params: As for `observation_encoder`, with the same errors.
    """
    observation_spec = tensor_spec.from_spec(observation_spec)
    convolved = _convolved(observation_spec, conv_layer_params)
    leaves = tree.flatten_with_path(observation_spec)
    texts = [
        " ".join(filter(None, ["/".join(map(str, path)), str(spec.shape.as_list())]))
        + f": {_treatment(path, spec, convolved)}"
        for path, spec in leaves
    ]
    joined = "; joined" if len(texts) > 1 else ""
    return f"observation {'; '.join(texts)}{joined}"


def has_images(
    observation_spec: types.NestedTensorSpec,
    conv_layer_params: Sequence[Any] | None = None,
) -> bool:
    """Whether `observation_encoder` makes convolutions.

    Args:
      observation_spec: The nest of specs of one observation.
      conv_layer_params: As for `observation_encoder`, with the same errors.
    """
    return bool(_convolved(tensor_spec.from_spec(observation_spec), conv_layer_params))


def image_axes(spec: tf.TensorSpec) -> tuple[int, int] | None:
    """Returns the axes of an image's height and width, counted from the end.

    Args:
      spec: The spec of one array of an observation.

    Returns:
      The axes, such as -3 and -2; None if `observation_encoder` does not take the
      array for an image.
    """
    frame = _frame(spec)
    if frame is None or not _is_image(spec, frame):
        return None
    shape = spec.shape.as_list()
    return (-2, -1) if len(shape) == 2 or _is_channels_first(shape) else (-3, -2)


def _convolved(
    observation_spec: Any, conv_layer_params: Sequence[Any] | None
) -> dict[_Path, tuple[Any, ...]]:
    """Returns the convolutions of each image by its path.

    Raises:
      ValueError: There is no observation, or there are `conv_layer_params` that do not
        fit.
    """
    leaves = tree.flatten_with_path(observation_spec)
    if not leaves:
        raise ValueError(
            f"observation_spec: got {observation_spec!r}, expected at least one "
            "observation; let the environment observe something, if only a constant."
        )
    if conv_layer_params is not None and not len(conv_layer_params):
        return {}
    images: dict[_Path, tuple[int, int, int]] = {}
    others: dict[_Path, tuple[int, int, int]] = {}
    for path, spec in leaves:
        frame = _frame(spec)
        if frame is not None:
            (images if _is_image(spec, frame) else others)[path] = frame
    if conv_layer_params is None:
        return {path: _default_convolutions(frame) for path, frame in images.items()}
    images = images or others
    if not images:
        raise ValueError(
            f"conv_layer_params: got {tuple(conv_layer_params)}, but no observation is "
            f"an image [height, width, channels]: {describe(observation_spec, ())}; "
            "leave the argument out."
        )
    for path, frame in images.items():
        _check_fits(path, frame, conv_layer_params)
    return dict.fromkeys(images, tuple(conv_layer_params))


def _frame(spec: tf.TensorSpec) -> tuple[int, int, int] | None:
    """Returns height, width and channels; None if there is no such arrangement."""
    if not (spec.dtype.is_floating or spec.dtype.is_integer or spec.dtype.is_bool):
        return None
    shape = spec.shape.as_list()
    if len(shape) == 3:
        return (*shape[1:], shape[0]) if _is_channels_first(shape) else tuple(shape)
    if spec.dtype == tf.uint8 and len(shape) == 2:
        return (*shape, 1)
    if spec.dtype == tf.uint8 and len(shape) == 4:
        return shape[1], shape[2], shape[0] * shape[3]
    return None


def _is_channels_first(shape: Sequence[int]) -> bool:
    return len(shape) == 3 and shape[0] < min(shape[1:])


def _is_image(spec: tf.TensorSpec, frame: tuple[int, int, int]) -> bool:
    """Whether an observation is an image, even if there are no convolutions."""
    if min(frame[:2]) < _LEAST_SIDE:
        return False
    if spec.dtype.is_floating:
        return bool(actions.has_finite_range(spec))
    return _range(spec) is not None


def _range(spec: tf.TensorSpec) -> tuple[int, int] | None:
    """Returns the least and the greatest integer; None if they are far apart."""
    if spec.dtype.is_bool:
        return 0, 1
    bounded = tensor_spec.BoundedTensorSpec.from_spec(spec)
    low, high = int(bounded.minimum.min()), int(bounded.maximum.max())
    return (low, high) if high - low <= _WIDEST else None


def _default_convolutions(frame: tuple[int, int, int]) -> tuple[Any, ...]:
    side = min(frame[:2])
    return next(layers for least, layers in _DEFAULTS if side >= least)


def _check_fits(
    path: _Path, frame: tuple[int, int, int], conv_layer_params: Sequence[Any]
) -> None:
    """Raises a ValueError if a kernel is larger than its input."""
    sides = list(frame[:2])
    for i, params in enumerate(conv_layer_params):
        _, kernels, strides, dilations = utils.convolution(i, params)
        for axis, side in enumerate(sides):
            kernel, stride, dilation = (
                value if isinstance(value, int) else value[axis]
                for value in (kernels, strides, dilations)
            )
            sides[axis] = (side - dilation * (kernel - 1) - 1) // stride + 1
        if min(sides) < 1:
            where = "/".join(["observation", *map(str, path)])
            remedy = "take smaller kernels"
            if min(frame[:2]) >= _LEAST_SIDE:
                remedy += f", such as {_default_convolutions(frame)}"
            raise ValueError(
                f"conv_layer_params: got {tuple(conv_layer_params)}, but the kernel of "
                f"number {i + 1} is larger than its input, for the image {where} of "
                f"{frame[0]}x{frame[1]} pixels; {remedy}."
            )


def _pixel_layers(spec: tf.TensorSpec) -> list[keras.layers.Layer]:
    """Makes the layers that turn an image into floats `[height, width, channels]`."""
    shape = spec.shape.as_list()
    layers: list[keras.layers.Layer] = []
    if _is_channels_first(shape):
        layers.append(keras.layers.Permute((2, 3, 1)))
    if len(shape) == 4:
        layers.append(keras.layers.Permute((2, 3, 1, 4)))
    if len(shape) != 3:
        layers.append(keras.layers.Reshape(_frame(spec)))
    if not spec.dtype.is_floating:
        low, high = _range(spec) or (0, 1)
        scale = 1 / max(high - low, 1)
        layers.append(keras.layers.Rescaling(scale, -low * scale))
    return layers


def _treatment(
    path: _Path, spec: tf.TensorSpec, convolved: Mapping[_Path, tuple[Any, ...]]
) -> str:
    """Says in words what becomes of one observation."""
    if path in convolved:
        order = ", channels first" if _is_channels_first(spec.shape.as_list()) else ""
        listed = ", ".join(str(tuple(layer)) for layer in convolved[path])
        return f"image{order}{_unscaled(spec)}, convolutions {listed}"
    layer = preprocessing.make_layer(path, spec)
    if isinstance(layer, preprocessing.OneHot):
        size = layer.compute_output_shape((None, *spec.shape))[1]
        return f"one of {size}" if spec.shape.rank == 0 else f"one-hot, {size} numbers"
    if isinstance(layer, keras.layers.Flatten):
        flattened = math.prod(spec.shape.as_list()) if spec.shape.rank > 1 else 0
        return f"flattened, {flattened} numbers" if flattened else "as it is"
    if spec.dtype == tf.uint8 and spec.shape.rank > 1:
        return f"scaled to [0, 1], flattened, {spec.shape.num_elements()} numbers"
    return "as numbers"


def _unscaled(spec: tf.TensorSpec) -> str:
    """Says of an image of floats that they are not scaled, and their range if known."""
    if not spec.dtype.is_floating:
        return ""
    if not actions.has_finite_range(spec):
        return ", unscaled floats"
    return f", unscaled floats from {spec.minimum.min():g} to {spec.maximum.max():g}"


def takes_nests(layer: Any) -> bool:
    """Whether a layer may take a nest of tensors.

    A functional model may, and so may a layer or a model of a class of one's own.
    """
    if isinstance(layer, keras.Sequential):
        return False
    return hasattr(layer, "operations") or not type(layer).__module__.startswith(
        "keras."
    )


def joined_model(
    model: keras.layers.Layer,
    observation_spec: types.NestedTensorSpec,
    layers_before: Callable[[tuple[Any, ...], tf.TensorSpec], Sequence[Any]],
) -> keras.Model:
    """Returns a functional model from the flat list of observations to a vector.

    Args:
      model: The model of the whole nest. If it is functional, its inputs are named as
        the leaves of a dict are, or have the structure of the observation.
      observation_spec: The nest of specs of one observation.
      layers_before: Returns the layers that each observation passes before the model,
        from its path and its spec.

    Raises:
      ValueError: An input of the model is missing, has another shape than its
        observation, or has no observation; or the model returns several tensors.
    """
    inputs, seen = [], {}
    for path, spec in tree.flatten_with_path(observation_spec):
        tensor = keras.Input(spec.shape, dtype=spec.dtype.name)
        inputs.append(tensor)
        for layer in layers_before(path, spec):
            tensor = layer(tensor)
        seen["/".join(map(str, path))] = tensor
    if hasattr(model, "operations"):
        arranged = _arranged(model, isinstance(observation_spec, Mapping), seen)
    else:
        arranged = tf.nest.pack_sequence_as(observation_spec, list(seen.values()))
    outputs = model(arranged)
    if not isinstance(outputs, keras.KerasTensor):
        raise ValueError(
            f"encoder: the model returns {outputs}, expected one tensor; join its "
            "outputs by keras.layers.Concatenate()."
        )
    return keras.Model(inputs, keras.layers.Flatten()(outputs))


def _arranged(model: Any, by_names: bool, seen: dict[str, Any]) -> Any:
    """Returns the observations as a functional model takes them."""
    structure = model.input
    if by_names and not isinstance(structure, Mapping):
        wanted = {tensor.name: tensor for tensor in model.inputs}
    else:
        wanted = {
            "/".join(map(str, path)): tensor
            for path, tensor in tree.flatten_with_path(structure)
        }
    for name, tensor in wanted.items():
        if name in seen and not _fits(tensor.shape, seen[name].shape):
            raise ValueError(
                f"encoder: the model's input {name!r} has the shape "
                f"{list(tensor.shape[1:])}, expected {list(seen[name].shape[1:])}, in "
                f"which the observation comes to it; make it keras.Input("
                f"{tuple(seen[name].shape[1:])}, name={name!r})."
            )
    missing = [name for name in seen if name not in wanted]
    if missing or len(wanted) > len(seen):
        leaves = ", ".join(f"{name} {list(x.shape[1:])}" for name, x in seen.items())
        raise ValueError(
            f"encoder: the model has the inputs {', '.join(wanted)}, expected one for "
            f"each leaf of the observation, {leaves}; name them so, by "
            "keras.Input(shape, name=...)."
        )
    return tree.unflatten_as(structure, [seen[name] for name in wanted])


def _fits(given: Any, expected: Any) -> bool:
    return tf.TensorShape(given).is_compatible_with(tf.TensorShape(expected))
