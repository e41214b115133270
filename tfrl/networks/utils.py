"""Makes stacks of layers, and folds outer dimensions `[B, T]` into one."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation import convolutions
from tfrl.keras_layers import permanent_variable_rate_dropout
from tfrl.networks.construction.seeding import SeedStream, clone_initializer

__all__ = [
    "Activation",
    "BatchSquash",
    "batch_concat",
    "call_layer",
    "check_single_floating_network_output",
    "clone_initializer",
    "conv_layers",
    "dense_layers",
    "dtype_name",
    "flatten_inner",
    "layer_normalization",
    "mlp_layers",
    "outer_rank",
]

Activation = Callable[[tf.Tensor], tf.Tensor] | str | None

# The static size of a dimension, or None, and a function that returns its size.
_Dimension = tuple[int | None, Callable[[], Any]]


class BatchSquash:
    """Folds the outer dimensions of a tensor into one, and unfolds them again.

    `flatten` turns `[B, T, ...]` into `[B * T, ...]` and remembers the outer
    dimensions; `unflatten` restores them on a tensor whose inner dimensions may differ.
    With one outer dimension both return their argument unchanged.
    """

    def __init__(self, batch_dims: int):
        """Takes the number of outer dimensions, which may be 0.

        Raises:
          ValueError: If `batch_dims` is negative.
        """
        if batch_dims < 0:
            raise ValueError(
                f"BatchSquash: batch_dims is {batch_dims}, expected 0 or more; the "
                "tensors have fewer dimensions than their spec: add a batch dimension."
            )
        self._batch_dims = batch_dims
        self._outer_shape: list[_Dimension] | None = None

    def flatten(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns `tensor` with its outer dimensions folded into one."""
        if self._batch_dims == 1:
            return tensor
        self._outer_shape = _dimensions(tensor)[: self._batch_dims]
        outer = tensor.shape[: self._batch_dims]
        size = math.prod(outer) if outer.is_fully_defined() else None
        folded = [(size, lambda: -1), *_dimensions(tensor)[self._batch_dims :]]
        return _reshape(tensor, folded)

    def unflatten(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns `tensor` with its first dimension unfolded as `flatten` found it.

        Raises:
          ValueError: If `flatten` was not called before.
        """
        if self._batch_dims == 1:
            return tensor
        if self._outer_shape is None:
            raise ValueError(
                "BatchSquash.unflatten: no outer dimensions are known yet, expected "
                "an earlier flatten; call flatten on the inputs first."
            )
        return _reshape(tensor, [*self._outer_shape, *_dimensions(tensor)[1:]])


def _dimensions(tensor: tf.Tensor) -> list[_Dimension]:
    return [
        (size, functools.partial(lambda axis: tf.shape(tensor)[axis], axis))
        for axis, size in enumerate(tensor.shape.as_list())
    ]


def _reshape(tensor: tf.Tensor, shape: list[_Dimension]) -> tf.Tensor:
    """Reshapes; a single unknown size becomes -1, so that the others stay static."""
    is_single = sum(size is None for size, _ in shape) == 1
    sizes = [
        (-1 if is_single else dynamic()) if size is None else size
        for size, dynamic in shape
    ]
    if not isinstance(tensor, tf.SparseTensor):
        return tf.reshape(tensor, sizes)
    if any(map(tf.is_tensor, sizes)):
        sizes = tf.cast(tf.stack(sizes), tf.int64)
    return tf.sparse.reshape(tensor, sizes)


def batch_concat(inputs: Any) -> tf.Tensor:
    """Flattens each tensor of a nest to `[B, n]` and joins them to one `[B, sum of n]`.

    The tensors come in the order of `tf.nest.flatten`: dictionaries are sorted by key.

    Args:
      inputs: A tensor or nest of tensors of one dtype, `[B, ...]`; `[B]` counts as
        `[B, 1]`.
    """
    leaves = [flatten_inner(tf.convert_to_tensor(x)) for x in tf.nest.flatten(inputs)]
    return leaves[0] if len(leaves) == 1 else tf.concat(leaves, axis=-1)


def flatten_inner(tensor: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, ...]` to `[B, n]`; returns `[B, n]` unchanged."""
    if tensor.shape.rank == 2:
        return tensor
    if tensor.shape.rank == 1:
        return tensor[:, tf.newaxis]
    inner = tensor.shape[1:]
    if inner.is_fully_defined():
        return tf.reshape(tensor, [-1, math.prod(inner)])
    return tf.reshape(tensor, [tf.shape(tensor)[0], -1])


def outer_rank(tensors: Any, specs: Any) -> int:
    """Returns the number of dimensions of `tensors` in front of the `specs`' own."""
    tensor = tf.nest.flatten(tensors)[0]
    spec = tf.nest.flatten(specs)[0]
    return int(tensor.shape.rank - spec.shape.rank)


def dtype_name(dtype: Any) -> Any:
    """Returns the name of a `tf.DType`; returns other dtypes and policies unchanged."""
    return dtype.name if isinstance(dtype, tf.DType) else dtype


def head_dtype(dtype: Any) -> Any:
    """Returns the dtype of a network's last layer: float32 under mixed precision.

    Values and losses need more precision than the products inside the network.
    """
    dtype = dtype_name(dtype)
    policy = keras.dtype_policies.get(dtype)
    is_mixed = policy.compute_dtype != policy.variable_dtype
    return policy.variable_dtype if is_mixed else dtype


def field(nest: Any, name: str) -> Any:
    """Returns a field of a dictionary or namedtuple of observations."""
    return nest[name] if isinstance(nest, Mapping) else getattr(nest, name)


def call_layer(layer: Any, inputs: Any, training: Any = False) -> Any:
    """Applies a stateless Keras layer or Network; returns the output alone."""
    if any(map(is_distribution, tf.nest.flatten(inputs))):
        # Keras takes only tensors by position.
        name = next(iter(inspect.signature(layer.call).parameters))
        outputs = layer(**{name: inputs}, training=training)
    else:
        outputs = layer(inputs, training=training)
    is_network = hasattr(layer, "state_spec") and hasattr(layer, "create_variables")
    return outputs[0] if is_network else outputs


def is_distribution(value: Any) -> bool:
    """Whether a leaf of a nest is a TFP distribution, not a tensor."""
    return hasattr(value, "log_prob") and hasattr(value, "batch_shape")


def check_single_floating_network_output(
    output_spec: Any, expected_output_shape: tuple[int, ...], label: str
) -> None:
    """Checks that a network's output is one float tensor of the expected shape.

    Raises:
      ValueError: If the output is anything else.
    """
    expected_output_shape = tuple(int(x) for x in expected_output_shape)
    if not (
        isinstance(output_spec, tf.TensorSpec)
        and output_spec.shape == expected_output_shape
        and output_spec.dtype.is_floating
    ):
        raise ValueError(
            f"Expected {label} to emit a floating point tensor with inner dims "
            f"{expected_output_shape}; but saw network output spec: {output_spec}. "
            "Build the network for this action spec."
        )


def mlp_layers(
    conv_layer_params: Sequence[Any] | None = None,
    fc_layer_params: Sequence[int] | None = None,
    dropout_layer_params: Sequence[Any] | None = None,
    activation_fn: Activation = keras.activations.relu,
    kernel_initializer: Any = None,
    weight_decay_params: Sequence[float | None] | None = None,
    name: str | None = None,
    *,
    seed: int | None = None,
) -> list[keras.layers.Layer]:
    """Makes 2D convolutions, a Flatten, and dense layers with dropout between them.

    Args:
      conv_layer_params: `(filters, kernel_size, strides)` for each convolution.
      fc_layer_params: The number of units of each dense layer.
      dropout_layer_params: For each dense layer None, a rate, or a dictionary of
        arguments to `PermanentVariableRateDropout`.
      activation_fn: The activation of every layer.
      kernel_initializer: The initialiser of all kernels; by default `VarianceScaling`
        with scale 2 over the fan-in, truncated normal.
      weight_decay_params: For each dense layer None or its L2 coefficient.
      name: The prefix of the layers' names.
      seed: Seeds the initialisers; None follows `tf.random.set_seed`.

    Raises:
      ValueError: If the lists for dense layers differ in length.
    """
    seeds = SeedStream(seed)
    prefix = f"{name}_" if name else None
    return [
        *conv_layers(
            conv_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            seeds=seeds,
            prefix=prefix,
        ),
        keras.layers.Flatten(),
        *dense_layers(
            fc_layer_params,
            dropout_layer_params=dropout_layer_params,
            weight_decay_params=weight_decay_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            seeds=seeds,
            prefix=prefix,
        ),
    ]


def conv_layers(
    conv_layer_params: Sequence[Any] | None,
    *,
    activation_fn: Activation,
    kernel_initializer: Any,
    seeds: SeedStream | None,
    conv_type: str = "2d",
    dtype: Any = None,
    prefix: str | None = None,
) -> list[keras.layers.Layer]:
    """Makes one convolution for each `(filters, kernel, strides[, dilation])`.

    Without `seeds`, the initialisers are not seeded, for a network that seeds its copy.
    """
    layer_types = {"1d": keras.layers.Conv1D, "2d": convolutions.Conv2D}
    if conv_type not in layer_types:
        raise ValueError(
            f"conv_type: got {conv_type!r}, expected '1d' or '2d'; choose by the rank "
            "of the observations."
        )
    layers = []
    for i, params in enumerate(conv_layer_params or ()):
        filters, kernel_size, strides, dilation = convolution(i, params)
        layers.append(
            layer_types[conv_type](
                filters=filters,
                kernel_size=kernel_size,
                strides=strides,
                dilation_rate=dilation,
                activation=activation_fn,
                kernel_initializer=_kernel_initializer(
                    kernel_initializer, None if seeds is None else seeds()
                ),
                dtype=dtype,
                name=f"{prefix}conv{conv_type}_{i}" if prefix else None,
            )
        )
    return layers


def convolution(index: int, params: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """Returns filters, kernel size, strides and dilation rate, as Python integers.

    Raises:
      ValueError: `params`, number `index` of `conv_layer_params`, are not 3 or 4.
    """
    if len(params) not in (3, 4):
        raise ValueError(
            f"conv_layer_params[{index}]: got {params!r}, expected 3 or 4 elements; "
            "write (filters, kernel_size, strides[, dilation_rate])."
        )
    filters, kernel_size, strides, *dilation = tree.map_structure(units, list(params))
    return filters, kernel_size, strides, dilation[0] if dilation else 1


def dense_layers(
    fc_layer_params: Sequence[int] | None,
    *,
    dropout_layer_params: Sequence[Any] | None,
    weight_decay_params: Sequence[float | None] | None,
    activation_fn: Activation,
    kernel_initializer: Any,
    seeds: SeedStream,
    layer_norm: bool = False,
    body: Any = None,
    dtype: Any = None,
    prefix: str | None = None,
) -> list[keras.layers.Layer]:
    """Makes the dense layers, and the dropout layers that follow some of them.

    With `layer_norm`, there is a normalization between each dense layer and its
    activation. A `body` makes the layers instead; see `layers.bodies`.
    """
    sizes = [] if fc_layer_params is None else list(map(units, fc_layer_params))

    def dense(size: int, initializer: Any = None) -> keras.layers.Layer:
        kernel = _kernel_initializer(initializer or kernel_initializer, seeds())
        return keras.layers.Dense(size, kernel_initializer=kernel, dtype=dtype)

    if body is not None:
        return list(body(sizes, dense, activation_fn, dtype))
    dropouts = _one_each(dropout_layer_params, sizes, "dropout_layer_params")
    decays = _one_each(weight_decay_params, sizes, "weight_decay_params")
    layers: list[keras.layers.Layer] = []
    for i, (num_units, dropout, decay) in enumerate(
        zip(sizes, dropouts, decays, strict=True)
    ):
        layers.append(
            keras.layers.Dense(
                num_units,
                activation=None if layer_norm else activation_fn,
                kernel_initializer=_kernel_initializer(kernel_initializer, seeds()),
                kernel_regularizer=(
                    None if decay is None else keras.regularizers.L2(decay)
                ),
                dtype=dtype,
                name=f"{prefix}dense{i}" if prefix else None,
            )
        )
        if layer_norm:
            layers.append(layer_normalization(dtype))
            layers.append(keras.layers.Activation(activation_fn, dtype=dtype))
        dropout_seed = seeds()
        if dropout:
            arguments = dropout if isinstance(dropout, dict) else {"rate": dropout}
            layers.append(
                permanent_variable_rate_dropout.PermanentVariableRateDropout(
                    **{"seed": dropout_seed, **arguments}
                )
            )
    return layers


def units(size: Any) -> Any:
    """Returns a number of units as a Python integer, because Keras refuses NumPy's."""
    return int(size) if isinstance(size, np.integer) else size


def layer_normalization(dtype: Any) -> keras.layers.Layer:
    """Makes a layer normalization with the epsilon of Sonnet and PyTorch."""
    return keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype)


def _one_each(params: Sequence[Any] | None, sizes: list[int], name: str) -> list[Any]:
    if params is None:
        return [None] * len(sizes)
    if len(params) != len(sizes):
        raise ValueError(
            f"{name}: got {len(params)} entries, expected {len(sizes)}, one for each "
            "entry of fc_layer_params; put None where a layer has none."
        )
    return list(params)


def _kernel_initializer(initializer: Any, seed: int | None) -> Any:
    if initializer is None:
        return keras.initializers.VarianceScaling(
            scale=2.0, mode="fan_in", distribution="truncated_normal", seed=seed
        )
    return clone_initializer(initializer, seed)
