"""EncodingNetwork: maps observations to a flat hidden state.

The network applies preprocessing layers -> combiner -> convolutions -> flatten -> dense
layers and dropout, each of which is optional.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
import tree

from tfrl.networks import network, utils
from tfrl.networks.construction import seeding
from tfrl.networks.layers import bodies
from tfrl.typing import types

CONV_TYPE_2D = "2d"
CONV_TYPE_1D = "1d"


class EncodingNetwork(network.Network):
    """Encodes nested observations `[B, ...]` or `[B, T, ...]` as `[B(, T), n]`.

    Integer observations, such as uint8 images, are cast to `dtype` after the
    preprocessing. They are not scaled.
    """

    def __init__(
        self,
        input_tensor_spec: types.NestedTensorSpec,
        preprocessing_layers: types.NestedLayer | None = None,
        preprocessing_combiner: keras.layers.Layer | None = None,
        conv_layer_params: Sequence[Any] | None = None,
        fc_layer_params: Sequence[int] | None = None,
        dropout_layer_params: Sequence[Any] | None = None,
        activation_fn: utils.Activation = keras.activations.relu,
        weight_decay_params: Sequence[float | None] | None = None,
        kernel_initializer: Any = None,
        batch_squash: bool = True,
        dtype: Any = tf.float32,
        name: str | None = "EncodingNetwork",
        conv_type: str = CONV_TYPE_2D,
        *,
        layer_norm: bool = False,
        body: bodies.Body | None = None,
        seed: int | None = None,
    ):
        """Creates the network; layers that are passed in are copied.

        Args:
          input_tensor_spec: The nest of observation specs.
          preprocessing_layers: A nest of Keras layers or Networks with the structure of
            the specs, or with a shallower structure, where a layer takes a sub-nest.
          preprocessing_combiner: A layer that maps the flat list of preprocessed
            observations to one tensor, such as `keras.layers.Concatenate()`. Required
            if the list has several entries.
          conv_layer_params: `(filters, kernel_size, strides[, dilation_rate])` for each
            convolution.
          fc_layer_params: The units of each dense layer.
          dropout_layer_params: For each dense layer None, a rate, or a dictionary of
            arguments to `PermanentVariableRateDropout`.
          activation_fn: The activation of convolutions and dense layers.
          weight_decay_params: For each dense layer None or its L2 coefficient.
          kernel_initializer: The initialiser of all kernels; by default
            `VarianceScaling` with scale 2 over the fan-in, truncated normal.
          batch_squash: Whether to fold outer dimensions into one for the layers.
          dtype: The dtype of convolutions and dense layers.
          name: The network's name.
          conv_type: '2d' or '1d'.
          layer_norm: Whether the outputs of each dense layer are normalized before its
            activation.
          body: Makes the layers in place of plain dense layers, without dropout and
            weight decay; see `layers.bodies`.
          seed: Seeds the initialisers and dropout; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If the lists differ in length, the preprocessing does not fit the
            specs, or a combiner is missing.
        """
        super().__init__(input_tensor_spec=input_tensor_spec, name=name)
        seeds = seeding.SeedStream(seed)
        self._set_untracked("_preprocessing_nest", preprocessing_layers)
        flat_layers = (
            []
            if preprocessing_layers is None
            else tf.nest.flatten(preprocessing_layers)
        )
        self._check_preprocessing(len(flat_layers), preprocessing_combiner)
        self._preprocessing_layers = [_fresh(layer, seeds) for layer in flat_layers]
        self._preprocessing_combiner = (
            None
            if preprocessing_combiner is None
            else _fresh(preprocessing_combiner, seeds)
        )
        dtype = utils.dtype_name(dtype)
        self._conv_layers = utils.conv_layers(
            conv_layer_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            seeds=seeds,
            conv_type=conv_type,
            dtype=dtype,
        )
        # It is listed in `layers`, and it is built, since it has no variables.
        self._flatten = keras.layers.Flatten(dtype=dtype)
        self._flatten.build((None,))
        self._dense_layers = utils.dense_layers(
            fc_layer_params,
            dropout_layer_params=dropout_layer_params,
            weight_decay_params=weight_decay_params,
            activation_fn=activation_fn,
            kernel_initializer=kernel_initializer,
            seeds=seeds,
            layer_norm=layer_norm,
            body=body,
            dtype=dtype,
        )
        self._batch_squash = batch_squash
        self._encoding_dtype = keras.dtype_policies.get(dtype).compute_dtype

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, Any]:
        """Returns the encoding and the unchanged network state."""
        del step_type
        observation, squash = self.squash(observation)
        encoding = self._preprocess(observation, training)
        if encoding.dtype.is_integer or encoding.dtype.is_bool:
            encoding = tf.cast(encoding, self._encoding_dtype)
        for layer in self._conv_layers:
            encoding = layer(encoding)
        if encoding.shape.rank != 2:
            encoding = self._flatten(encoding)
        for layer in self._dense_layers:
            encoding = layer(encoding, training=training)
        return squash.unflatten(encoding), network_state

    def squash(self, observation: Any) -> tuple[Any, utils.BatchSquash]:
        """Folds the outer dimensions, unless `batch_squash=False`.

        Networks that contain an encoder fold the outer dimensions before the encoder
        and unfold them after their own last layer, so that all layers see `[B, n]`.
        """
        rank = utils.outer_rank(observation, self.input_tensor_spec)
        squash = utils.BatchSquash(rank if self._batch_squash else 1)
        return tf.nest.map_structure(squash.flatten, observation), squash

    def _check_preprocessing(self, num_layers: int, combiner: Any) -> None:
        spec = self.input_tensor_spec
        num_inputs = len(tf.nest.flatten(spec))
        if num_layers:
            num_inputs = num_layers
            if tf.nest.is_nested(spec):
                self._split(spec)
            elif num_layers > 1:
                raise ValueError(
                    f"preprocessing_layers: got {num_layers} layers, expected one for "
                    f"the single observation {spec}; pass one layer."
                )
        if num_inputs > 1 and combiner is None:
            raise ValueError(
                f"preprocessing_combiner: got None for {num_inputs} inputs, expected a "
                "preprocessing_combiner layer when there is more than one; pass "
                "keras.layers.Concatenate(), say."
            )

    def _split(self, observation: Any) -> list[Any]:
        """Returns the part of the nest that each preprocessing layer takes."""
        if not tf.nest.is_nested(observation):
            return [observation]
        try:
            parts: list[Any] = tree.flatten_up_to(
                self._preprocessing_nest, observation, check_types=False
            )
        except (ValueError, TypeError) as error:
            raise ValueError(
                "preprocessing_layers: their structure does not match "
                f"input_tensor_spec {self.input_tensor_spec}, expected the same "
                f"structure or a shallower one; rearrange them ({error})."
            ) from error
        return parts

    def _preprocess(self, observation: Any, training: bool) -> tf.Tensor:
        if self._preprocessing_layers:
            parts = [
                utils.call_layer(layer, part, training)
                for layer, part in zip(
                    self._preprocessing_layers, self._split(observation), strict=True
                )
            ]
        else:
            parts = tf.nest.flatten(observation)
        if self._preprocessing_combiner is None:
            return parts[0]
        return utils.call_layer(self._preprocessing_combiner, parts, training)


def _has_model(layer: Any) -> bool:
    """Whether a layer is a functional model of Keras, or has one among its layers."""
    if hasattr(layer, "operations"):
        return True
    return any(map(_has_model, getattr(layer, "layers", ())))


def _fresh(layer: keras.layers.Layer, seeds: seeding.SeedStream) -> keras.layers.Layer:
    """Copies a layer, so that networks built from it share no weights."""
    # The layers of a functional model have weights from the start.
    if (
        isinstance(layer, keras.layers.Layer)
        and layer.weights
        and not _has_model(layer)
    ):
        warnings.warn(
            f"{layer.name}: got a layer that has weights already, expected a new one; "
            "its copy in the network starts with its own weights.",
            stacklevel=4,
        )
    copied = seeding.copy_layer(layer, seeds)
    seeding.seed_layer(copied, seeds)
    return copied
