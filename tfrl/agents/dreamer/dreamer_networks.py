"""The networks of DreamerV3: the world model, the actor and the critic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfrl import losses
from tfrl.agents.dreamer import rssm
from tfrl.compilation import convolutions, internals
from tfrl.networks.construction import seeding
from tfrl.networks.layers import encoders
from tfrl.specs import tensor_spec
from tfrl.typing import types

# The bins of rewards and of returns.
BINS = losses.TwoHot(-20.0, 20.0, 255)
# The channels of convolutions, in units of the model's depth.
_CHANNELS = (2, 3, 4, 4)
_KERNEL = 5
# [p, a, r] says whether row r of a filter, for output p of the two at each row of a
# doubled image, reads the row before (a = 0), the row itself or the next one.
_READS = np.array(
    [[[(p + r) // 2 == a for r in range(_KERNEL)] for a in range(3)] for p in range(2)],
    np.float32,
)


class Leaf:
    """One array of an observation, and what is predicted of it.

    Attributes:
      spec: Its spec.
      image: The shape `[h, w, c]` of an image, with sides that can be halved as often
        as there are convolutions; None for an array that does not go through them.
      size: The numbers of its vector, if it is no image.
    """

    def __init__(self, spec: Any) -> None:
        """Stores the spec."""
        self.spec = spec
        self._axes = encoders.image_axes(spec)
        self.image: tuple[int, int, int] | None = None
        self._classes = 0
        if self._axes:
            height, width = (spec.shape[axis] for axis in self._axes)
            channels = spec.shape.num_elements() // (height * width)
            # Missing rows and columns are 0.
            factor = 2 ** len(_CHANNELS)
            whole = (-(-side // factor) * factor for side in (height, width))
            self.image = (*whole, channels)
            self._missing = self.image[0] - height, self.image[1] - width
        elif spec.dtype.is_integer and not spec.shape.rank:
            self._classes = int(spec.maximum - spec.minimum) + 1
        self.size = self._classes or max(spec.shape.num_elements(), 1)

    def numbers(self, value: tf.Tensor) -> tf.Tensor:
        """Returns images `[N, h, w, c]` from 0 to 1, or vectors `[N, size]`."""
        if self._classes:
            return tf.one_hot(value - self.spec.minimum, self._classes)
        floats = tf.cast(value, tf.float32)
        if not self.spec.dtype.is_floating and tensor_spec.is_bounded(self.spec):
            low = np.min(self.spec.minimum)
            floats = (floats - low) / max(np.max(self.spec.maximum) - low, 1)
        if self.image is None:
            return tf.reshape(floats, [-1, self.size])
        if self.spec.shape.rank == 2:
            floats = floats[..., tf.newaxis]
        elif self._axes == (-2, -1):
            floats = tf.transpose(floats, [0, 2, 3, 1])
        return tf.pad(floats, [[0, 0], *([0, n] for n in self._missing), [0, 0]])


class WorldModel(rssm.TrackedLayer):
    """Encodes observations, follows and imagines states, and predicts what is seen.

    Attributes:
      sizes: Its sizes.
      rssm: The recurrent state-space model.
      leaves: The arrays of an observation.
    """

    def __init__(
        self,
        observation_spec: types.NestedTensorSpec,
        num_actions: int,
        sizes: rssm.Sizes,
        seed: int | None = None,
    ):
        """Makes the layers, and their weights.

        Args:
          observation_spec: The nest of specs of the observations.
          num_actions: The numbers of an action vector; see `unit_actions`.
          sizes: The sizes.
          seed: Seeds the initialisers.
        """
        super().__init__(name="world_model")
        self.sizes = sizes
        self.leaves = [Leaf(spec) for spec in tf.nest.flatten(observation_spec)]
        self._images = [leaf.image for leaf in self.leaves if leaf.image]
        self._vectors = [leaf for leaf in self.leaves if leaf.image is None]
        units = sizes.units
        stream = seeding.SeedStream(seed)
        self.rssm = rssm.Rssm(sizes, num_actions, stream())
        self.encoder = [x for _ in range(3) for x in rssm.hidden(units)]
        self.decoder = [x for _ in range(3) for x in rssm.hidden(units)]
        self.vector_heads = [_linear(leaf.size) for leaf in self._vectors]
        self.image_encoders = [_convolutions(sizes.depth) for _ in self._images]
        self.image_decoders = [_Deconvolutions(x, sizes) for x in self._images]
        self.reward_head = [*rssm.hidden(units), _linear(BINS.num_bins, zero=True)]
        self.continue_head = [*rssm.hidden(units), _linear(1)]
        self.seed_layers(stream, self.rssm)
        self._make_weights(observation_spec, num_actions)

    def embed(self, observation: types.NestedTensor) -> tf.Tensor:
        """Returns the embeddings `[N, n]` of observations `[N, ...]`."""
        parts, vectors, images = [], [], iter(self.image_encoders)
        for leaf, value in zip(self.leaves, tf.nest.flatten(observation), strict=True):
            numbers = leaf.numbers(value)
            if leaf.image:
                encoded = rssm.apply(next(images), numbers - 0.5)
                size = math.prod(encoded.shape[1:])
                parts.append(tf.reshape(encoded, [-1, size]))
            else:
                vectors.append(losses.signed_logp1(numbers))
        if vectors:
            parts.append(rssm.apply(self.encoder, tf.concat(vectors, axis=-1)))
        return tf.concat(parts, axis=-1)

    def predictions(self, features: tf.Tensor) -> list[tf.Tensor]:
        """Returns what is predicted of each leaf: images, or `symlog` of vectors."""
        hidden = rssm.apply(self.decoder, features) if self._vectors else None
        heads, images = iter(self.vector_heads), iter(self.image_decoders)
        return [
            next(images)(features) if leaf.image else next(heads)(hidden)
            for leaf in self.leaves
        ]

    def reconstruction_loss(
        self, features: tf.Tensor, observation: types.NestedTensor
    ) -> tf.Tensor:
        """Returns the squared errors of all leaves, summed, `[N]`."""
        total = tf.zeros(tf.shape(features)[:1])
        for leaf, prediction, value in self._by_leaf(features, observation):
            numbers = tf.stop_gradient(leaf.numbers(value))
            if leaf.image:
                error = tf.math.squared_difference(prediction, numbers)
                total += tf.reduce_sum(error, axis=[1, 2, 3])
            else:
                total += losses.symlog_loss(prediction, numbers)
        return total

    def compared(
        self, features: tf.Tensor, observation: types.NestedTensor
    ) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """Returns each leaf as `Leaf.numbers`, observed and predicted."""
        return [
            (
                leaf.numbers(value),
                prediction if leaf.image else losses.signed_expm1(prediction),
            )
            for leaf, prediction, value in self._by_leaf(features, observation)
        ]

    def _by_leaf(
        self, features: tf.Tensor, observation: types.NestedTensor
    ) -> Iterator[tuple[Leaf, tf.Tensor, tf.Tensor]]:
        """Returns each leaf with its prediction and its observed value."""
        values = tf.nest.flatten(observation)
        return zip(self.leaves, self.predictions(features), values, strict=True)

    def reward_logits(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the logits of the reward that led to a state, `[N, K]`."""
        return rssm.apply(self.reward_head, features)

    def continue_logits(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the logits of going on after a state, `[N]`."""
        return tf.squeeze(rssm.apply(self.continue_head, features), axis=-1)

    def _make_weights(self, observation_spec: Any, num_actions: int) -> None:
        observation = tf.nest.map_structure(
            lambda spec: tf.zeros([1, *spec.shape], spec.dtype), observation_spec
        )
        tokens, state = self.embed(observation), self.rssm.initial(1)
        deter = self.rssm.advance(state, tf.zeros([1, num_actions]))
        self.rssm.posterior(deter, tokens)
        self.rssm.prior(deter)
        features = state.features()
        self.predictions(features)
        self.reward_logits(features)
        self.continue_logits(features)
        for layer in internals.flatten_layers(self):
            layer.built = True


class Head(rssm.TrackedLayer):
    """Hidden layers and a linear one on a state's features: an actor or a critic."""

    def __init__(
        self,
        sizes: rssm.Sizes,
        num_outputs: int,
        name: str,
        *,
        zero: bool = False,
        seed: int | None = None,
    ):
        """Makes the layers, and their weights.

        Args:
          sizes: The sizes of the world model.
          num_outputs: The number of outputs.
          name: The name.
          zero: Whether the last kernel is 0 at first.
          seed: Seeds the initialisers.
        """
        super().__init__(name=name)
        self.hidden = [x for _ in range(3) for x in rssm.hidden(sizes.units)]
        self.last = _linear(num_outputs, zero=zero, scale=0.01)
        self.seed_layers(seeding.SeedStream(seed))
        self(tf.zeros([1, sizes.deter + sizes.stoch * sizes.classes]))

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the outputs, `[N, num_outputs]`."""
        return self.last(rssm.apply(self.hidden, features))


def _linear(
    units: int, *, zero: bool = False, scale: float = 1.0
) -> keras.layers.Layer:
    kernel = "zeros" if zero else rssm.initializer(scale)
    return keras.layers.Dense(units, kernel_initializer=kernel)


def _convolution(
    channels: int, kind: type[convolutions.Conv2D] = convolutions.Conv2D, **kwargs: Any
) -> keras.layers.Layer:
    return kind(
        channels,
        _KERNEL,
        padding="same",
        kernel_initializer=rssm.initializer(),
        **kwargs,
    )


class DoublingConv2D(convolutions.Conv2D):
    """A convolution of images whose rows and columns are each repeated twice.

    It is computed on the images before they are doubled. For each of the four outputs
    at a pixel, the filter's weights that would read the same pixel are added up.
    """

    def convolution_op(self, inputs: tf.Tensor, kernel: Any) -> tf.Tensor:
        """Returns the outputs without the bias, `[N, 2 * h, 2 * w, channels]`."""
        filters = tf.einsum("pas,qbt,stcd->abcpqd", _READS, _READS, kernel)
        filters = tf.reshape(filters, [*filters.shape[:3], -1])
        return tf.nn.depth_to_space(super().convolution_op(inputs, filters), 2)


def _convolutions(depth: int) -> list[keras.layers.Layer]:
    """Makes convolutions that halve an image's sides four times."""
    layers: list[keras.layers.Layer] = []
    for factor in _CHANNELS:
        layers += [
            _convolution(factor * depth),
            keras.layers.MaxPooling2D(2),
            rssm.RmsNorm(),
            keras.layers.Activation("silu"),
        ]
    return layers


class _Deconvolutions(rssm.TrackedLayer):
    """Makes an image of a state's features: convolutions between doublings."""

    def __init__(self, shape: tuple[int, int, int], sizes: rssm.Sizes):
        super().__init__(name="deconvolutions")
        height, width, channels = shape
        factor = 2 ** len(_CHANNELS)
        depths = [x * sizes.depth for x in _CHANNELS[::-1]]
        self._least = (height // factor, width // factor, depths[0])
        self.first = [
            keras.layers.Dense(
                math.prod(self._least), kernel_initializer=rssm.initializer()
            ),
        ]
        self.norm = [rssm.RmsNorm(), keras.layers.Activation("silu")]
        self.middle: list[Sequence[keras.layers.Layer]] = [
            [
                _convolution(depth, DoublingConv2D),
                rssm.RmsNorm(),
                keras.layers.Activation("silu"),
            ]
            for depth in depths[1:]
        ]
        self.final = [_convolution(channels, DoublingConv2D, activation="sigmoid")]

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns images from 0 to 1, `[N, height, width, channels]`."""
        x = tf.reshape(rssm.apply(self.first, features), [-1, *self._least])
        x = rssm.apply(self.norm, x)
        for layers in self.middle:
            x = rssm.apply(layers, x)
        return rssm.apply(self.final, x)
