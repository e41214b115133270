"""The recurrent state-space model of DreamerV3.

A state has a deterministic part h, a vector, and a stochastic part z, several one-hot
vectors. With the embedding x of an observation and the action a before it,

    h_t = GRU(h_(t-1), z_(t-1), a_(t-1)),
    z_t ~ q(z | h_t, x_t)    (the posterior),
    z_t ~ p(z | h_t)         (the prior, which imagines).

Hafner et al., "Mastering diverse control tasks through world models" (Nature, 2025;
arXiv:2301.04104), equation 3 and appendix B.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfrl import losses
from tfrl.compilation import accelerators, internals
from tfrl.networks.construction import seeding
from tfrl.utils.random_numbers import seeds

# Gates begin with an update of sigmoid(-1), so that states first change slowly.
_UPDATE_BIAS = -1.0


class State(NamedTuple):
    """A state of the model.

    Attributes:
      deter: The deterministic part, `[..., D]`.
      stoch: The stochastic part, one-hot `[..., S, C]`.
    """

    deter: tf.Tensor
    stoch: tf.Tensor

    def features(self) -> tf.Tensor:
        """Returns both parts as one vector, `[..., D + S C]`."""
        *outer, groups, classes = self.stoch.shape
        dynamic = tf.shape(self.stoch)[: len(outer)]
        flat = tf.reshape(self.stoch, tf.concat([dynamic, [groups * classes]], axis=0))
        return tf.concat([self.deter, flat], axis=-1)


class Sizes(NamedTuple):
    """The sizes of a model.

    Attributes:
      deter: The numbers of the deterministic part, `D`.
      units: The units of hidden layers.
      hidden: The units of the model's own hidden layers.
      classes: The classes of each stochastic variable, `C`.
      depth: Half the number of the first convolution's channels.
      stoch: The number of stochastic variables, `S`.
      blocks: The blocks of the recurrent weights.
    """

    deter: int
    units: int
    hidden: int
    classes: int
    depth: int
    stoch: int = 32
    blocks: int = 8


# By the authors' names, which are numbers of weights.
SIZES = {
    "1m": Sizes(512, 64, 64, 4, 4),
    "12m": Sizes(2048, 256, 256, 16, 16),
    "25m": Sizes(3072, 384, 384, 24, 24),
}


@keras.saving.register_keras_serializable("tfrl")
class RmsNorm(keras.layers.Layer):
    """Divides a vector by the root of its mean square, and scales each number.

    Zhang and Sennrich, "Root mean square layer normalization" (2019, arXiv:1910.07467),
    equation 4.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the scales."""
        self.scale = self.add_weight(
            name="scale", shape=(input_shape[-1],), initializer="ones"
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the normalized inputs, of the same shape."""
        x = tf.cast(inputs, tf.float32)
        size = tf.reduce_mean(tf.square(x), axis=-1, keepdims=True)
        normed = x * tf.math.rsqrt(size + 1e-4) * tf.convert_to_tensor(self.scale)
        return tf.cast(normed, inputs.dtype)


@keras.saving.register_keras_serializable("tfrl")
class BlockDense(keras.layers.Layer):
    """A dense layer whose kernel has blocks on its diagonal alone."""

    def __init__(self, units: int, blocks: int, kernel_initializer: Any, **kwargs: Any):
        """Creates the layer.

        Args:
          units: The number of outputs.
          blocks: The number `g` of blocks, which divides inputs and outputs.
          kernel_initializer: The initialiser of the kernel.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.units, self.blocks = units, blocks
        self.kernel_initializer = kernel_initializer

    def build(self, input_shape: Any) -> None:
        """Makes the kernel `[g, inputs / g, units / g]` and the bias."""
        shape = (self.blocks, input_shape[-1] // self.blocks, self.units // self.blocks)
        self.kernel = self.add_weight(
            name="kernel", shape=shape, initializer=self.kernel_initializer
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer="zeros"
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the outputs `[B, units]` for inputs `[B, n]`."""
        kernel = tf.convert_to_tensor(self.kernel)
        grouped = tf.reshape(inputs, [-1, self.blocks, kernel.shape[1]])
        # A batched product, with the blocks as the batch.
        products = tf.matmul(tf.transpose(grouped, [1, 0, 2]), kernel)
        joined = tf.reshape(tf.transpose(products, [1, 0, 2]), [-1, self.units])
        return joined + tf.convert_to_tensor(self.bias)


def initializer(scale: float = 1.0) -> keras.initializers.Initializer:
    """Makes the initialiser of kernels: a truncated normal, by the inputs' number."""
    return keras.initializers.VarianceScaling(scale**2, "fan_in", "truncated_normal")


def initializer_of(inputs: int) -> keras.initializers.Initializer:
    """Makes `initializer` for a kernel of a given number of inputs."""
    # The standard deviation of a normal distribution that is cut at two of them.
    stddev = math.sqrt(1 / inputs) / 0.87962566103423978
    return keras.initializers.TruncatedNormal(stddev=stddev)


def hidden(units: int) -> list[keras.layers.Layer]:
    """Makes a hidden layer: a dense one, a normalization and SiLU."""
    return [
        keras.layers.Dense(units, kernel_initializer=initializer()),
        RmsNorm(),
        keras.layers.Activation("silu"),
    ]


def apply(layers: Sequence[keras.layers.Layer], inputs: tf.Tensor) -> tf.Tensor:
    """Returns what layers, called in turn, make of inputs."""
    for layer in layers:
        inputs = layer(inputs)
    return inputs


class TrackedLayer(internals.TracksMore, keras.layers.Layer):
    """A layer whose layers in lists are in checkpoints and SavedModels, too."""

    def seed_layers(self, stream: seeding.SeedStream, *seeded: TrackedLayer) -> None:
        """Seeds the initialisers of all layers inside, but for those seeded already."""
        done = {id(x) for layer in seeded for x in internals.flatten_layers(layer)}
        for layer in internals.flatten_layers(self, include_self=False):
            if id(layer) not in done:
                seeding.seed_layer(layer, stream)

    def also_tracked(self) -> dict[str, Any]:
        """Returns all variables by name."""
        return {f"variable_{i}": v for i, v in enumerate(self.variables)}


class Rssm(TrackedLayer):
    """The recurrent state-space model.

    Attributes:
      sizes: Its sizes.
      num_actions: The numbers of an action vector, `A`.
    """

    def __init__(self, sizes: Sizes, num_actions: int, seed: int | None = None):
        """Makes the layers.

        Args:
          sizes: The sizes.
          num_actions: The numbers of an action vector.
          seed: Seeds the initialisers; None draws a seed.
        """
        super().__init__(name="rssm")
        self.sizes, self.num_actions = sizes, num_actions
        width, logits = sizes.hidden, sizes.stoch * sizes.classes

        def last() -> keras.layers.Layer:
            return keras.layers.Dense(logits, kernel_initializer=initializer())

        self.of_deter, self.of_stoch, self.of_action = (hidden(width) for _ in "123")
        # Each block has its part of the deterministic state and all inputs as inputs.
        # As by the authors, a kernel's scale goes by the inputs of all its blocks.
        kernel = initializer_of(sizes.deter + sizes.blocks * 3 * width)
        self.core_own = BlockDense(sizes.deter, sizes.blocks, kernel)
        self.core_shared = keras.layers.Dense(
            sizes.deter, use_bias=False, kernel_initializer=kernel
        )
        self.core = [RmsNorm(), keras.layers.Activation("silu")]
        gates = initializer_of(sizes.deter)
        self.gates = BlockDense(3 * sizes.deter, sizes.blocks, gates)
        self.prior_layers = [*hidden(width), *hidden(width), last()]
        self.posterior_layers = [*hidden(width), last()]
        self.seed_layers(seeding.SeedStream(seed))

    def initial(self, batch_size: int | tf.Tensor) -> State:
        """Returns the state at the beginning of an episode, `[B, ...]`."""
        sizes = self.sizes
        return State(
            tf.zeros([batch_size, sizes.deter]),
            tf.zeros([batch_size, sizes.stoch, sizes.classes]),
        )

    def advance(self, state: State, action: tf.Tensor) -> tf.Tensor:
        """Returns the next deterministic part, `[B, D]`, after an action `[B, A]`."""
        blocks = self.sizes.blocks
        action = action / tf.stop_gradient(tf.maximum(tf.abs(action), 1.0))
        stoch = tf.reshape(state.stoch, [-1, self.sizes.stoch * self.sizes.classes])
        inputs = tf.concat(
            [
                apply(self.of_deter, state.deter),
                apply(self.of_stoch, stoch),
                apply(self.of_action, action),
            ],
            axis=-1,
        )
        seen = self.core_own(state.deter) + self.core_shared(inputs)
        outputs = self.gates(apply(self.core, seen))
        grouped = tf.reshape(outputs, [-1, blocks, 3, self.sizes.deter // blocks])
        reset, candidate, update = (
            tf.reshape(grouped[:, :, i], [-1, self.sizes.deter]) for i in range(3)
        )
        candidate = tf.tanh(tf.sigmoid(reset) * candidate)
        update = tf.sigmoid(update + _UPDATE_BIAS)
        return update * candidate + (1 - update) * state.deter

    def prior(self, deter: tf.Tensor) -> tf.Tensor:
        """Returns the stochastic part's logits `[B, S, C]`, without an observation."""
        return self._logits(apply(self.prior_layers, deter))

    def posterior(self, deter: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the logits of the stochastic part, `[B, S, C]`.

        Args:
          deter: The deterministic part, `[B, D]`.
          tokens: The embedding of the observation, `[B, n]`.
        """
        inputs = tf.concat([deter, tokens], axis=-1)
        return self._logits(apply(self.posterior_layers, inputs))

    def _logits(self, outputs: tf.Tensor) -> tf.Tensor:
        shape = [-1, self.sizes.stoch, self.sizes.classes]
        return losses.mixed_with_uniform(tf.reshape(outputs, shape))


def gumbel(seed: tf.Tensor, shape: Any, batch_axis: int = 0) -> tf.Tensor:
    """Returns numbers of the standard Gumbel distribution.

    Args:
      seed: The seed.
      shape: Their shape.
      batch_axis: The axis of `shape` that counts examples; see `seeds.uniform`.
    """
    unit = tf.maximum(seeds.uniform(seed, shape, batch_axis=batch_axis), 2.0**-24)
    return -tf.math.log(-tf.math.log(unit))


def sample(logits: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Returns one-hot draws `[..., C]`, with the gradient of the probabilities.

    Bengio et al., "Estimating or propagating gradients through stochastic neurons"
    (2013, arXiv:1308.3432), section 4, the straight-through estimator.

    Args:
      logits: Normalized logits, `[..., C]`.
      noise: Numbers of `gumbel`, like `logits`.
    """
    drawn = mode(logits + noise)
    probabilities = tf.exp(logits)
    return tf.stop_gradient(drawn - probabilities) + probabilities


def mode(logits: tf.Tensor) -> tf.Tensor:
    """Returns one-hot vectors of the largest logits, `[..., C]`."""
    return tf.one_hot(tf.argmax(logits, axis=-1), logits.shape[-1])


def unroll(step: Callable[[Any, Any], tuple[Any, Any]], state: Any, inputs: Any) -> Any:
    """Calls a function for one step after the other, in a loop of the graph.

    Args:
      step: Takes a state and the inputs of a step; returns the next state and outputs,
        nests of tensors.
      state: The state before the first step.
      inputs: The nest of inputs, `[T, ...]`.

    Returns:
      The nest of outputs, `[T, ...]`.
    """
    length = tf.shape(tf.nest.flatten(inputs)[0])[0]

    def at(i: tf.Tensor) -> Any:
        return accelerators.map_moved(lambda x: x[i], inputs)

    probe = tf.function(lambda: step(state, at(0))[1], autograph=False)
    specs = tf.nest.map_structure(
        lambda x: tf.TensorSpec.from_tensor(x),
        probe.get_concrete_function().structured_outputs,
    )
    arrays = [
        tf.TensorArray(spec.dtype, length, element_shape=spec.shape)
        for spec in tf.nest.flatten(specs)
    ]

    def body(i: tf.Tensor, state: Any, arrays: list[Any]) -> tuple[Any, ...]:
        following, outputs = step(state, at(i))
        written = [
            array.write(i, x)
            for array, x in zip(arrays, tf.nest.flatten(outputs), strict=True)
        ]
        return i + 1, following, written

    _, _, arrays = tf.while_loop(
        lambda i, *_: i < length,
        body,
        (tf.constant(0), state, arrays),
        maximum_iterations=length,
    )
    return tf.nest.pack_sequence_as(specs, [array.stack() for array in arrays])
