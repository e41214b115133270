import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import masked, shifted_categorical, squash_to_spec
from tfrl.networks import categorical_projection_network, normal_projection_network
from tfrl.specs import tensor_spec

Categorical = categorical_projection_network.CategoricalProjectionNetwork
Normal = normal_projection_network.NormalProjectionNetwork
Spec = tensor_spec.BoundedTensorSpec
X = np.random.default_rng(0).normal(size=[5, 3]).astype(np.float32)


def test_categorical_logits_are_a_dense_layer():
    net = Categorical(Spec([], tf.int32, 0, 3), seed=1)
    distribution, state = net(X, 1)
    kernel, bias = (v.numpy() for v in net.variables)
    np.testing.assert_allclose(distribution.logits, X @ kernel + bias, rtol=1e-5)
    assert state == ()


def test_categorical_over_several_dimensions():
    net = Categorical(Spec([2], tf.int64, 0, 3))
    distribution, _ = net(tf.ones([5, 7, 3]), outer_rank=2)
    assert distribution.logits.shape == (5, 7, 2, 4)
    assert distribution.sample().shape == (5, 7, 2)
    assert distribution.dtype == tf.int64


def test_one_mask_serves_all_dimensions_of_an_action():
    net = Categorical(Spec([2], tf.int32, 0, 2))
    distribution, _ = net(X, 1, mask=tf.constant([[True, False, True]] * 5))
    np.testing.assert_array_equal(
        distribution.logits[:, :, 1], np.full([5, 2], np.finfo(np.float32).min)
    )


@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        (Spec([2], tf.int32, [0, 4], [2, 5]), [3, 2]),
        (Spec([3], tf.int32, 0, 1), [2, 2, 2]),
        (Spec([2, 2], tf.int32, 0, [[2, 3], [0, 1]]), [3, 4, 1, 2]),
    ],
)
@pytest.mark.parametrize("outer", [[5], [5, 2]])
def test_a_flat_mask_has_the_masks_of_the_dimensions_one_after_the_other(
    spec, numbers, outer
):
    """Against the masked logits of each dimension alone, as sb3-contrib splits them."""
    net = Categorical(spec, seed=1)
    inputs = tf.ones([*outer, 3])
    rng = np.random.default_rng(3)
    flat = rng.random([*outer, sum(numbers)]) < 0.5
    masked_by_flat, _ = net(inputs, len(outer), mask=tf.constant(flat))
    free, _ = net(inputs, len(outer))
    shape = [*outer, len(numbers), max(numbers)]
    logits = masked_by_flat.logits.numpy().reshape(shape)
    unmasked = free.logits.numpy().reshape(shape)
    begins = np.cumsum([0, *numbers])
    for i, number in enumerate(numbers):
        mask = flat[..., begins[i] : begins[i + 1]]
        expected = np.where(mask, unmasked[..., i, :number], np.finfo(np.float32).min)
        np.testing.assert_array_equal(logits[..., i, :number], expected)
        assert (logits[..., i, number:] < -1e38).all()


def test_each_dimension_may_have_a_mask_of_its_own():
    net = Categorical(Spec([2], tf.int32, 0, 2))
    mask = np.array([[[1, 0, 1], [0, 1, 1]]] * 5)
    distribution, _ = net(X, 1, mask=tf.constant(mask))
    np.testing.assert_array_equal(distribution.logits > -1e38, mask == 1)


@pytest.mark.parametrize("shape", [[5, 4], [5, 1], [5, 3, 3], [5, 1, 2, 3]])
def test_a_mask_of_another_shape_is_an_error(shape):
    net = Categorical(Spec([2], tf.int32, 0, [2, 1]))
    with pytest.raises(ValueError, match=r"mask: got shape .* \[..., 5\], the masks"):
        net(X, 1, mask=tf.ones(shape))


def test_dimensions_have_the_numbers_of_actions_of_their_own_bounds():
    """Against a categorical distribution of each dimension alone."""
    spec = Spec([2], tf.int32, [0, 4], [4, 5])  # Five actions, and two.
    net = Categorical(spec, logits_init_output_factor=10.0, seed=1)
    distribution, _ = net(X, 1)
    kernel, bias = (v.numpy() for v in net.variables)
    logits = (X @ kernel + bias).reshape(5, 2, 5)
    alone = [
        tfp.distributions.Categorical(logits=logits[:, 0]),
        tfp.distributions.Categorical(logits=logits[:, 1, :2]),
    ]
    actions = distribution.sample(200, seed=2).numpy()
    assert set(np.unique(actions[..., 0])) == {0, 1, 2, 3, 4}
    assert set(np.unique(actions[..., 1])) == {4, 5}
    expected = np.stack(
        [alone[0].log_prob(actions[..., 0]), alone[1].log_prob(actions[..., 1] - 4)],
        axis=-1,
    )
    np.testing.assert_allclose(distribution.log_prob(actions), expected, rtol=1e-5)
    entropies = np.stack([each.entropy() for each in alone], axis=-1)
    np.testing.assert_allclose(distribution.entropy(), entropies, rtol=1e-5)
    modes = np.stack([alone[0].mode(), alone[1].mode() + 4], axis=-1)
    np.testing.assert_array_equal(distribution.mode(), modes)


def test_a_gradient_reaches_the_logits_of_actions_alone():
    net = Categorical(Spec([2], tf.int32, 0, [2, 1]), seed=1)
    with tf.GradientTape() as tape:
        distribution, _ = net(X, 1)
        other = distribution.copy(logits=tf.stop_gradient(distribution.logits) * 0.5)
        loss = tf.reduce_sum(
            distribution.kl_divergence(other)
            + distribution.entropy()
            + distribution.log_prob(tf.ones([5, 2], tf.int32))
        )
    gradient = tape.gradient(loss, net.variables[1])
    assert np.all(np.isfinite(gradient))
    np.testing.assert_array_equal(gradient.numpy() != 0, [True] * 5 + [False])


def test_categorical_honours_the_minimum():
    net = Categorical(Spec([], tf.int32, 5, 6))
    distribution, _ = net(X, 1)
    assert isinstance(distribution, shifted_categorical.ShiftedCategorical)
    assert set(np.unique(distribution.sample(100, seed=1))) == {5, 6}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (tf.TensorSpec([], tf.int32), "sample_spec must be bounded"),
        (Spec([], tf.float32, 0, 1), "must be discrete"),
    ],
)
def test_categorical_refuses_other_specs(spec, message):
    with pytest.raises(ValueError, match=message):
        Categorical(spec)


@pytest.mark.parametrize(
    "spec",
    [
        tf.TensorSpec([2], tf.float32),
        Spec([2], tf.float32, -np.inf, np.inf),
        Spec([2], tf.float32, [0, -1], [np.inf, 1]),
        Spec([2], tf.float32, tf.float32.min, tf.float32.max),
    ],
)
def test_means_without_a_finite_range_are_not_squashed(spec):
    net = Normal(spec, seed=1)
    distribution, _ = net(X, 1)
    kernel, bias = (v.numpy() for v in net.trainable_variables[:2])
    np.testing.assert_allclose(distribution.mean(), X @ kernel + bias, rtol=1e-5)
    with pytest.raises(ValueError, match="expected a finite minimum and maximum"):
        Normal(spec, scale_distribution=True)


def test_scalar_action_gives_a_normal():
    net = Normal(Spec([], tf.float32, -1, 1), std_bias_initializer_value=0.0)
    distribution, _ = net(X, 1)
    assert isinstance(distribution, tfp.distributions.Normal)
    assert distribution.batch_shape == (5,)
    np.testing.assert_allclose(distribution.stddev(), np.full(5, np.log(2)), rtol=1e-6)


def test_matrix_actions_keep_their_shape():
    net = Normal(Spec([2, 3], tf.float32, -1, 1))
    distribution, _ = net(tf.ones([5, 7, 3]), 2)
    assert distribution.mode().shape == (5, 7, 2, 3)


def test_transforms_can_be_left_out():
    net = Normal(
        Spec([1], tf.float32, -0.001, 0.001),
        mean_transform=None,
        std_transform=tf.exp,
        state_dependent_std=True,
        std_bias_initializer_value=0.5,
        seed=1,
    )
    distribution, _ = net(X, 1)
    mean_kernel, mean_bias, std_kernel, std_bias = (v.numpy() for v in net.variables)
    np.testing.assert_allclose(
        distribution.mode(), X @ mean_kernel + mean_bias, rtol=1e-4
    )
    np.testing.assert_array_equal(std_bias, [0.5])
    np.testing.assert_allclose(
        distribution.stddev(), np.exp(X @ std_kernel + std_bias), rtol=1e-5
    )
    assert not np.array_equal(mean_kernel, std_kernel)


def test_scaled_distribution_stays_in_the_bounds():
    net = Normal(
        Spec([2], tf.float32, [-1, 0], [1, 10]),
        scale_distribution=True,
        std_bias_initializer_value=5.0,
    )
    distribution, _ = net(X, 1)
    assert isinstance(distribution, squash_to_spec.SquashToSpecNormal)
    samples = distribution.sample(200, seed=1).numpy()
    assert np.all(samples >= [-1, 0])
    assert np.all(samples <= [1, 10])


def test_seed_stream_class_is_used():
    def kernel(seed):
        net = Normal(
            Spec([1], tf.float32, -1, 1),
            seed=seed,
            seed_stream_class=tfp.util.SeedStream,
        )
        net(X, 1)
        return net.variables[0].numpy()

    np.testing.assert_array_equal(kernel(1), kernel(1))
    assert not np.array_equal(kernel(1), kernel(2))


def test_normal_refuses_masks_and_other_dtypes():
    net = Normal(Spec([1], tf.float32, -1, 1))
    with pytest.raises(NotImplementedError, match="action mask"):
        net(X, 1, mask=tf.ones([5, 1]))
    with pytest.raises(ValueError, match=r"must match the sample_spec.dtype"):
        net(X.astype(np.float64), 1)
    with pytest.raises(ValueError, match="only supports single spec samples"):
        Normal([Spec([1], tf.float32, -1, 1)] * 2)
    with pytest.raises(ValueError, match="expected a floating dtype"):
        Normal(Spec([1], tf.int32, -1, 1))


def test_tanh_squash_to_spec():
    spec = Spec([2], tf.float32, [-1, 2], [1, 6])
    squashed = normal_projection_network.tanh_squash_to_spec(
        tf.constant([[0.0, 0.0], [-100.0, 100.0]]), spec
    )
    np.testing.assert_array_equal(squashed, [[0.0, 4.0], [-1.0, 6.0]])


def test_masked_categorical_is_what_a_mask_in_the_network_gives():
    mask = tf.constant([[True, False, True]] * 5)
    net = Categorical(Spec([], tf.int32, 0, 2), seed=1)
    plain, _ = net(X, 1)
    by_network, _ = net(X, 1, mask=mask)
    by_class = masked.MaskedCategorical(plain.logits, mask, neg_inf=None)
    np.testing.assert_array_equal(by_network.logits, by_class.logits)


@pytest.mark.parametrize(
    ("projection", "dtype"),
    [
        (normal_projection_network.NormalProjectionNetwork, tf.float32),
        (categorical_projection_network.CategoricalProjectionNetwork, tf.int32),
    ],
)
def test_actions_without_elements_are_refused(projection, dtype):
    spec = tensor_spec.BoundedTensorSpec([2, 0], dtype, 0, 1)
    with pytest.raises(ValueError, match=r"^sample_spec: got the shape \(2, 0\)"):
        projection(spec)
