"""The recurrent state-space model, against NumPy written from the paper."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tfrl.agents.dreamer import rssm

SIZES = rssm.Sizes(deter=8, units=5, hidden=6, classes=3, depth=2, stoch=2, blocks=4)
RNG = np.random.default_rng(2)


@pytest.fixture(scope="module")
def model():
    made = rssm.Rssm(SIZES, num_actions=2, seed=1)
    deter = made.advance(made.initial(1), tf.zeros([1, 2]))
    made.posterior(deter, tf.zeros([1, 7]))
    made.prior(deter)
    for variable in made.variables:  # Biases and scales, too.
        variable.assign(variable.numpy() + 0.1 * RNG.normal(size=variable.shape))
    return made


def weights(layer):
    return [v.numpy().astype(np.float64) for v in layer.variables]


def silu(x):
    return x * special.expit(x)


def normed(x, scale):
    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-4) * scale


def hidden(layers, x):
    (kernel, bias), (scale,) = weights(layers[0]), weights(layers[1])
    return silu(normed(x @ kernel + bias, scale))


def blockwise(layer, x):
    kernel, bias = weights(layer)
    parts = np.split(x, len(kernel), axis=-1)
    return (
        np.concatenate([p @ k for p, k in zip(parts, kernel, strict=True)], -1) + bias
    )


def advance(model, deter, stoch, action):
    action = action / np.maximum(np.abs(action), 1.0)
    inputs = np.concatenate(
        [
            hidden(model.of_deter, deter),
            hidden(model.of_stoch, stoch.reshape(len(stoch), -1)),
            hidden(model.of_action, action),
        ],
        axis=-1,
    )
    (shared,) = weights(model.core_shared)
    (scale,) = weights(model.core[0])
    seen = blockwise(model.core_own, deter) + inputs @ shared
    gates = blockwise(model.gates, silu(normed(seen, scale)))
    # Each block has its three gates side by side.
    gates = gates.reshape(len(deter), SIZES.blocks, 3, -1)
    reset, candidate, update = (
        gates[:, :, i].reshape(len(deter), -1) for i in range(3)
    )
    candidate = np.tanh(special.expit(reset) * candidate)
    update = special.expit(update - 1)
    return update * candidate + (1 - update) * deter


def test_a_step_is_that_of_a_gru_in_blocks(model):
    deter, action = RNG.normal(size=[5, 8]), 3 * RNG.normal(size=[5, 2])
    stoch = np.eye(3)[RNG.integers(0, 3, size=[5, 2])]
    state = rssm.State(tf.constant(deter, tf.float32), tf.constant(stoch, tf.float32))
    found = model.advance(state, tf.constant(action, tf.float32))
    expected = advance(model, deter, stoch, action)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_an_output_of_a_block_depends_on_its_own_inputs_alone():
    layer = rssm.BlockDense(8, 4, rssm.initializer_of(8))
    x = tf.constant(RNG.normal(size=[1, 12]), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    slopes = tape.jacobian(y, x).numpy().reshape(8, 12)
    blocks = np.kron(np.eye(4), np.ones([2, 3])) > 0
    np.testing.assert_array_equal(slopes != 0, blocks)


def test_the_distributions_are_mixed_with_a_uniform_one(model):
    deter, tokens = RNG.normal(size=[5, 8]), RNG.normal(size=[5, 7])
    prior = model.prior(tf.constant(deter, tf.float32))
    x = hidden(model.prior_layers[3:6], hidden(model.prior_layers[:3], deter))
    kernel, bias = weights(model.prior_layers[6])
    logits = (x @ kernel + bias).reshape(5, 2, 3)
    expected = 0.99 * special.softmax(logits, -1) + 0.01 / 3
    np.testing.assert_allclose(np.exp(prior), expected, rtol=1e-4)
    posterior = model.posterior(
        tf.constant(deter, tf.float32), tf.constant(tokens, tf.float32)
    )
    x = hidden(model.posterior_layers[:3], np.concatenate([deter, tokens], -1))
    kernel, bias = weights(model.posterior_layers[3])
    logits = (x @ kernel + bias).reshape(5, 2, 3)
    expected = 0.99 * special.softmax(logits, -1) + 0.01 / 3
    np.testing.assert_allclose(np.exp(posterior), expected, rtol=1e-4)


def test_draws_follow_the_probabilities_and_have_their_gradient():
    logits = tf.math.log(tf.constant([[0.6, 0.3, 0.1]]))
    many = tf.tile(logits, [20_000, 1])
    noise = rssm.gumbel(tf.constant([1, 2], tf.int64), tf.shape(many))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        drawn = rssm.sample(tf.tile(logits, [20_000, 1]), noise)
        mean = tf.reduce_mean(drawn, axis=0)
    np.testing.assert_allclose(mean, [0.6, 0.3, 0.1], atol=0.015)
    assert set(map(tuple, np.round(drawn.numpy(), 5))) == set(map(tuple, np.eye(3)))
    # As if the draws were the probabilities exp(logits).
    slopes = tape.gradient(mean, logits)
    np.testing.assert_allclose(slopes, [[0.6, 0.3, 0.1]], rtol=1e-3)


@pytest.mark.parametrize("jit", [False, True])
def test_a_loop_over_steps_gives_the_outputs_and_the_gradient(jit):
    inputs = tf.constant(RNG.normal(size=[6, 2]), tf.float32)

    @tf.function(autograph=False, jit_compile=jit)
    def run(start):
        with tf.GradientTape() as tape:
            tape.watch(start)
            sums = rssm.unroll(lambda s, x: (0.5 * s + x, s * s), start, inputs)
        return sums, tape.gradient(sums, start)

    sums, slope = run(tf.constant([1.0, -2.0]))
    state, expected, squares = np.array([1.0, -2.0]), [], np.zeros(2)
    for t, x in enumerate(inputs.numpy()):
        expected.append(state**2)
        squares += 2 * state * 0.5**t
        state = 0.5 * state + x
    np.testing.assert_allclose(sums, expected, rtol=1e-5)
    np.testing.assert_allclose(slope, squares, rtol=1e-5)


def test_kernels_of_blocks_have_the_scale_of_all_their_inputs():
    sizes = rssm.Sizes(deter=64, units=8, hidden=16, classes=4, depth=2, blocks=4)
    model = rssm.Rssm(sizes, 3, seed=1)
    model.advance(model.initial(1), tf.zeros([1, 3]))
    inputs = 64 + 4 * 3 * 16
    for layer, number in (
        (model.core_own, inputs),
        (model.core_shared, inputs),
        (model.gates, 64),
        (model.of_deter[0], 64),
        (model.of_stoch[0], 128),
    ):
        assert np.std(layer.kernel) == pytest.approx(number**-0.5, rel=0.1)
