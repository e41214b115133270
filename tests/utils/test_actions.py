"""Actions against their specs."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.distributions import shifted_categorical
from tfrl.specs import tensor_spec
from tfrl.utils import actions

SPEC = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1, 0], [3, 10])


def bounded(shape, dtype, low, high):
    return tensor_spec.BoundedTensorSpec(shape, dtype, low, high)


# --- Bounds.


def test_clipping_to_bounds_of_each_entry():
    clipped = actions.clip_to_spec(tf.constant([[-5.0, 11.0], [1.0, 0.5]]), SPEC)
    np.testing.assert_array_equal(clipped, [[-1, 10], [1, 0.5]])


def test_clipping_integers_keeps_their_type():
    spec = bounded([], tf.uint8, 2, 250)
    clipped = actions.clip_to_spec(tf.constant([0, 100, 255], tf.uint8), spec)
    assert clipped.dtype == tf.uint8
    np.testing.assert_array_equal(clipped, [2, 100, 250])


def test_means_and_magnitudes_of_a_nest():
    specs = {"a": SPEC, "b": (bounded([], tf.int32, 1, 4),)}
    means, magnitudes = actions.spec_means_and_magnitudes(specs)
    np.testing.assert_array_equal(means["a"], [1, 5])
    np.testing.assert_array_equal(magnitudes["a"], [2, 5])
    assert means["a"].dtype == np.float32
    assert (means["b"][0], magnitudes["b"][0]) == (2.5, 1.5)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(tf.uint8, 10, 250), (tf.int8, -128, 127), (tf.int32, -(2**31), 2**31 - 1)],
)
def test_bounds_of_small_integer_types_do_not_wrap(dtype, low, high):
    mean, magnitude = actions.spec_means_and_magnitudes(bounded([], dtype, low, high))
    np.testing.assert_array_equal(mean, (low + high) / 2)
    np.testing.assert_array_equal(magnitude, (high - low) / 2)


def test_scaling_from_minus_one_and_one_to_the_bounds():
    scaled = actions.scale_to_spec(tf.constant([[0.0, 1], [-1, 0.5]]), SPEC)
    np.testing.assert_array_equal(scaled, [[1, 10], [-1, 7.5]])


def test_scaling_takes_the_shape_and_type_of_the_spec():
    spec = bounded([2, 1], tf.int32, 0, 10)
    scaled = actions.scale_to_spec(tf.constant([[-1.0, 1.0], [0.0, 0.2]]), spec)
    assert (scaled.shape, scaled.dtype) == ([2, 2, 1], tf.int32)
    np.testing.assert_array_equal(scaled[..., 0], [[0, 10], [5, 6]])


# --- Indexing.

VALUES = tf.reshape(tf.range(12.0), [2, 2, 3])


def test_index_picks_one_value_for_each_outer_entry():
    picked = actions.index_with_actions(VALUES, tf.constant([[1, 2], [0, 1]]))
    np.testing.assert_array_equal(picked, [[1, 5], [6, 10]])
    picked = actions.index_with_actions(VALUES[0], tf.constant([2, 0]))
    np.testing.assert_array_equal(picked, [2, 3])
    assert actions.index_with_actions(VALUES[0, 0], tf.constant(1)) == 1


def test_index_with_vectors():
    picked = actions.index_with_actions(
        VALUES, tf.constant([[1, 2], [0, 1]]), multi_dim_actions=True
    )
    np.testing.assert_array_equal(picked, [5, 7])


@pytest.mark.parametrize("multi_dim", [False, True])
@pytest.mark.parametrize("dtype", [tf.uint8, tf.int8, tf.int16, tf.int32, tf.int64])
def test_index_of_any_integer_type_has_a_gradient(dtype, multi_dim):
    index = tf.constant([[1, 2], [0, 1]], dtype)
    with tf.GradientTape() as tape:
        tape.watch(VALUES)
        picked = actions.index_with_actions(VALUES, index, multi_dim)
    gradient = tape.gradient(picked, VALUES)
    assert tf.reduce_sum(gradient) == (2 if multi_dim else 4)


def test_index_with_unknown_outer_dimensions():
    pick = tf.function(
        actions.index_with_actions,
        input_signature=[
            tf.TensorSpec([None, None, 3], tf.float32),
            tf.TensorSpec([None, None], tf.int32),
        ],
    )
    np.testing.assert_array_equal(
        pick(VALUES, tf.constant([[1, 2], [0, 1]])), [[1, 5], [6, 10]]
    )


@pytest.mark.parametrize("shape", [[2], [2, 2, 1]])
def test_index_of_another_rank(shape):
    with pytest.raises(
        ValueError,
        match=r"actions: expected one dimension less than q_values of shape \(2, 2, 3\)"
        r", got shape .*; index the last",
    ):
        actions.index_with_actions(VALUES, tf.zeros(shape, tf.int32))


# --- Probabilities.


def distributions(batch_shape):
    """A nest: two independent coins in one action, and a 2-D normal one."""
    import tensorflow_probability as tfp

    coins = tfp.distributions.Bernoulli(probs=tf.fill([*batch_shape, 2], 0.25))
    normal = tfp.distributions.MultivariateNormalDiag(
        tf.zeros([*batch_shape, 2]), [1.0, 2.0]
    )
    return {"coins": coins, "normal": normal}


SPECS = {
    "coins": bounded([2], tf.int32, 0, 1),
    "normal": bounded([2], tf.float32, -9, 9),
}


@pytest.mark.parametrize("batch_shape", [[3], [3, 4]])
def test_log_probability_adds_up_all_but_the_outer_dimensions(batch_shape):
    action = {
        "coins": tf.zeros([*batch_shape, 2], tf.int32),
        "normal": tf.ones([*batch_shape, 2]),
    }
    result = actions.log_probability(distributions(batch_shape), action, SPECS)
    normal = -0.5 * (1 + 0.25) - np.log(2 * np.pi) - np.log(2)
    expected = np.full(batch_shape, 2 * np.log(0.75) + normal)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize(("low", "high", "nearest"), [(2, 4, 2), (-5, -3, -3)])
def test_zeros_of_padding_have_the_likelihood_of_the_nearest_action(low, high, nearest):
    spec = bounded([], tf.int32, low, high)
    logits = np.log([[0.5, 0.3, 0.2]] * 3).astype(np.float32)
    distribution = shifted_categorical.ShiftedCategorical(logits, shift=low)
    result = actions.log_probability(distribution, tf.constant([0, low, high]), spec)
    expected = logits[0][[nearest - low, 0, 2]]
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_zero_is_an_action_where_the_spec_holds_it():
    spec = bounded([], tf.int32, -1, 1)
    logits = np.log([[0.5, 0.3, 0.2]]).astype(np.float32)
    distribution = shifted_categorical.ShiftedCategorical(logits, shift=-1)
    result = actions.log_probability(distribution, tf.constant([0]), spec)
    np.testing.assert_allclose(result, [np.log(0.3)], rtol=1e-6)


def test_log_probability_needs_the_same_structure():
    with pytest.raises(ValueError, match="structure"):
        actions.log_probability(
            distributions([3]), {"coins": tf.zeros([3, 2], tf.int32)}, SPECS
        )


def squashed(loc=0.0):
    """A distribution with a bijector without parameters, batch shape [3]."""
    import tensorflow_probability as tfp

    return tfp.distributions.TransformedDistribution(
        tfp.distributions.Normal(tf.fill([3], loc), 1.0), tfp.bijectors.Tanh()
    )


@pytest.mark.parametrize("place", ["a loop", "a condition", "a function"])
def test_log_probability_inside_of_something_and_after_it(place):
    action, spec = tf.constant([-0.5, 0.0, 0.5]), bounded([], tf.float32, -1, 1)

    def log_probability(action):
        return actions.log_probability(squashed(), action, spec)

    @tf.function(autograph=False)
    def both(action):
        if place == "a loop":
            _, inside = tf.while_loop(
                lambda i, _: i < 2,
                lambda i, _: (i + 1, log_probability(action)),
                (0, tf.zeros([3])),
            )
        elif place == "a condition":
            inside = tf.cond(
                action[0] < 0, lambda: log_probability(action), lambda: tf.zeros([3])
            )
        else:
            inside = tf.function(lambda: log_probability(action), autograph=False)()
        return inside, log_probability(action)

    x = np.arctanh(action)
    expected = -0.5 * x**2 - 0.5 * np.log(2 * np.pi) - np.log(1 - action**2)
    for found in both(action):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_log_probability_of_a_rounded_sample_is_of_the_number_before_the_rounding():
    spec = bounded([], tf.float32, -1, 1)

    @tf.function(autograph=False)
    def draw():
        distribution = squashed(20.0)
        action = distribution.sample(seed=[1, 2])
        return action, actions.log_probability(distribution, action, spec)

    action, log_probability = draw()
    np.testing.assert_array_equal(action, [1, 1, 1])
    assert np.all(np.isfinite(log_probability))


@pytest.mark.parametrize("outer_rank", [None, 2])
def test_entropy_adds_up_all_but_the_outer_dimensions(outer_rank):
    result = actions.entropy(distributions([3, 4]), SPECS, outer_rank)
    coin = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    normal = np.log(2 * np.pi * np.e) + np.log(2)
    np.testing.assert_allclose(result, np.full([3, 4], 2 * coin + normal), rtol=1e-5)


def test_entropy_leaves_out_distributions_without_one():
    import tensorflow_probability as tfp

    nest = distributions([3])
    squashed = tfp.distributions.TransformedDistribution(
        nest["normal"], tfp.bijectors.Tanh()
    )
    result = actions.entropy(
        {"coins": nest["coins"], "normal": squashed}, SPECS, outer_rank=1
    )
    coin = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(result, [2 * coin] * 3, rtol=1e-5)
    assert actions.entropy(squashed, SPECS["normal"], outer_rank=1) is None


def test_the_components_of_all_actions_are_counted():
    specs = {"a": tf.TensorSpec([2, 3]), "b": tf.TensorSpec([])}
    assert actions.num_components(specs) == 7
