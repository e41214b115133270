import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import (
    masked,
    sampling,
    shifted_categorical,
    squash_to_spec,
)
from tfrl.specs import bounded_tensor_spec
from tfrl.utils.random_numbers import seeds

SEED = tf.constant([3, 4], tf.int64)
PROBS = np.array([0.1, 0.0, 0.6, 0.3])
MANY = 20_000


def logits(size=MANY):
    with np.errstate(divide="ignore"):
        return tf.constant(np.tile(np.log(PROBS), [size, 1]), tf.float32)


def frequencies(samples):
    return np.bincount(np.ravel(samples), minlength=4) / MANY


def test_values_come_as_often_as_their_probabilities_say():
    drawn = sampling.sample(tfp.distributions.Categorical(logits()), SEED)
    np.testing.assert_allclose(frequencies(drawn), PROBS, atol=0.015)
    assert frequencies(drawn)[1] == 0


def test_probabilities_serve_as_well_as_logits():
    probs = np.tile(PROBS, [MANY, 1]).astype(np.float32)
    drawn = sampling.sample(tfp.distributions.Categorical(probs=probs), SEED)
    np.testing.assert_allclose(frequencies(drawn), PROBS, atol=0.015)


def test_masked_values_are_never_drawn():
    """Not even the last one, where the probabilities do not add up to 1 exactly."""
    mask = np.tile([True, False, True, False], [MANY, 1])
    drawn = sampling.sample(masked.MaskedCategorical(logits(), mask), SEED)
    np.testing.assert_allclose(frequencies(drawn), [1 / 7, 0, 6 / 7, 0], atol=0.015)
    assert frequencies(drawn)[[1, 3]].max() == 0


@pytest.mark.parametrize("number", [0.0, 1 - 2.0**-23])
def test_the_least_and_the_greatest_number_give_possible_values(monkeypatch, number):
    monkeypatch.setattr(
        sampling.seeds, "uniform", lambda seed, shape: tf.fill(shape, number)
    )
    rows = np.random.default_rng(0).normal(size=[1000, 8]).astype(np.float32)
    rows[:, [0, 7]] = -1e30
    drawn = sampling.sample(tfp.distributions.Categorical(rows), SEED).numpy()
    np.testing.assert_array_equal(drawn, 1 if number == 0 else 6)


def test_shape_and_dtype_are_those_of_tfp():
    distribution = shifted_categorical.ShiftedCategorical(
        tf.zeros([2, 3, 4]), dtype=tf.int64, shift=5
    )
    drawn = sampling.sample(distribution, SEED)
    assert drawn.shape == (2, 3)
    assert drawn.dtype == tf.int64
    assert set(np.ravel(drawn)) <= {5, 6, 7, 8}


def test_a_graph_draws_the_same_with_and_without_xla():
    def draw(logits, seed):
        return sampling.sample(tfp.distributions.Categorical(logits), seed)

    for size in (4, 300):
        rows = np.random.default_rng(1).normal(size=[size, 3]).astype(np.float32)
        plain = tf.function(draw)(rows, SEED)
        compiled = tf.function(draw, jit_compile=True)(rows, SEED)
        np.testing.assert_array_equal(plain, compiled)


def test_the_number_of_rows_may_be_unknown():
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def draw(logits):
        return sampling.sample(tfp.distributions.Categorical(logits), SEED)

    expected = sampling.sample(tfp.distributions.Categorical(logits(7)), SEED)
    np.testing.assert_array_equal(draw(logits(7)), expected)


class Always(tfp.distributions.Categorical):
    """Samples in a way of its own."""

    def _sample_n(self, n, seed=None):
        return tf.fill([n, *self.batch_shape], 2)


@pytest.mark.parametrize(
    "distribution", [tfp.distributions.Beta([2.0], 1.0), Always(tf.zeros([5, 3]))]
)
def test_other_distributions_sample_themselves(distribution):
    np.testing.assert_array_equal(
        sampling.sample(distribution, SEED), distribution.sample(seed=[3, 4])
    )


# --- Normal distributions, also squashed.

LOC = np.array([[0.5, -0.5], [0.0, 2.0], [10.0, -10.0]], np.float32)
SCALE = np.array([[0.5, 1.0], [2.0, 0.25], [0.01, 0.01]], np.float32)
SPEC = bounded_tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 0.5])


def normals(loc=LOC, scale=SCALE):
    vector = tfp.distributions.MultivariateNormalDiag(loc, scale)
    return {
        "scalars": tfp.distributions.Normal(loc, scale),
        "vectors": vector,
        "squashed": squash_to_spec.SquashToSpecNormal(vector, SPEC),
    }


def log_density_in_double(loc, scale, noise, is_squashed):
    """Of each component, worked out in NumPy's doubles."""
    loc, scale, noise = (np.asarray(x, np.float64) for x in (loc, scale, noise))
    log_density = -(noise**2) / 2 - np.log(scale) - np.log(2 * np.pi) / 2
    if is_squashed:
        x = loc + scale * noise
        log_density -= np.log([2.0, 0.25]) - 2 * np.log(np.cosh(x))
    return log_density


@pytest.mark.parametrize("kind", ["scalars", "vectors", "squashed"])
def test_normal_samples_and_log_densities_are_right(kind):
    value, log_density = sampling.sample_and_log_prob(normals()[kind], SEED)
    noise = seeds.normal(SEED, [3, 2]).numpy()
    x = LOC + SCALE * noise
    if kind == "squashed":
        x = np.array([0, 0.25]) + np.array([2, 0.25]) * np.tanh(x)
    np.testing.assert_allclose(value, x, rtol=1e-5, atol=1e-6)
    expected = log_density_in_double(LOC, SCALE, noise, kind == "squashed")
    if kind != "scalars":
        expected = expected.sum(axis=-1)
    np.testing.assert_allclose(log_density, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(sampling.sample(normals()[kind], SEED), value)


def test_log_density_is_tfp_s_where_tfp_can_compute_it():
    squashed = normals(LOC[:2], SCALE[:2])["squashed"]
    value, log_density = sampling.sample_and_log_prob(squashed, SEED)
    np.testing.assert_allclose(log_density, squashed.log_prob(value), rtol=1e-4)


@pytest.mark.parametrize("x", [10.0, -10.0, 40.0, -40.0])
def test_log_density_has_a_gradient_where_tanh_is_rounded_to_its_limit(x):
    """d(-log(1 - tanh(x)^2))/dx = 2 tanh(x), and d(-log(scale))/dscale adds -1e3."""
    loc, scale = tf.constant([[x, 0.0]]), tf.constant([[1e-3, 1.0]])
    with tf.GradientTape() as tape:
        tape.watch([loc, scale])
        distribution = normals(loc, scale)["squashed"]
        value, log_density = sampling.sample_and_log_prob(distribution, SEED)
    assert abs(value[0, 0]) > 1.999999
    to_loc, to_scale = tape.gradient(log_density, [loc, scale])
    noise = seeds.normal(SEED, [1, 2]).numpy()
    np.testing.assert_allclose(to_loc[0, 0], 2 * np.sign(x), rtol=1e-6)
    np.testing.assert_allclose(
        to_scale[0, 0], -1e3 + 2 * np.sign(x) * noise[0, 0], rtol=1e-5
    )


def test_gradient_flows_through_the_sample():
    loc, scale = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, 0.5]])
    with tf.GradientTape() as tape:
        tape.watch([loc, scale])
        value = sampling.sample(tfp.distributions.Normal(loc, scale), SEED)
    to_loc, to_scale = tape.gradient(value, [loc, scale])
    np.testing.assert_array_equal(to_loc, [[1.0, 1.0]])
    np.testing.assert_allclose(to_scale, seeds.normal(SEED, [1, 2]), rtol=1e-6)


def test_normal_samples_are_the_same_under_xla_and_for_unknown_shapes():
    @tf.function(autograph=False)
    def draw(loc, scale):
        return [
            sampling.sample_and_log_prob(distribution, SEED)
            for distribution in normals(loc, scale).values()
        ]

    compiled = tf.function(draw.python_function, jit_compile=True, autograph=False)
    spec = tf.TensorSpec([None, 2])
    expected = tf.nest.flatten(
        [sampling.sample_and_log_prob(d, SEED) for d in normals().values()]
    )
    for results in (
        draw.get_concrete_function(spec, spec)(tf.constant(LOC), tf.constant(SCALE)),
        compiled(LOC, SCALE),
    ):
        for ours, theirs in zip(tf.nest.flatten(results), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_independent_normals_are_those_of_a_diagonal_covariance():
    normal = tfp.distributions.Normal(LOC, SCALE)
    vectors = sampling.sample_and_log_prob(
        tfp.distributions.MultivariateNormalDiag(LOC, SCALE), SEED
    )
    independent = sampling.sample_and_log_prob(
        tfp.distributions.Independent(normal, reinterpreted_batch_ndims=1), SEED
    )
    for one, other in zip(independent, vectors, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_other_distributions_are_tfp_s():
    beta = tfp.distributions.Beta([2.0, 3.0], [1.0, 1.0])
    value, log_density = sampling.sample_and_log_prob(beta, SEED)
    np.testing.assert_array_equal(value, beta.sample(seed=tf.cast(SEED, tf.int32)))
    np.testing.assert_allclose(log_density, beta.log_prob(value), rtol=1e-6)


def test_discrete_distributions_are_not_reparameterized():
    with pytest.raises(ValueError, match="fully reparameterized"):
        sampling.sample_and_log_prob(
            tfp.distributions.Categorical(logits=[0.0, 1.0]), SEED
        )
