import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import reparameterized_sampling, tanh_bijector_stable, utils
from tfrl.specs import tensor_spec

SPEC = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1.0, 0.0], [1.0, 10.0])


def normal(loc=(0.5, -0.5), scale=(1.0, 2.0)):
    return tfp.distributions.MultivariateNormalDiag(
        loc=tf.constant([loc]), scale_diag=tf.constant([scale])
    )


def test_squashed_log_probability_is_that_of_the_change_of_variables():
    distribution = utils.scale_distribution_to_spec(normal(), SPEC)
    y = np.array([[0.3, 7.0]], np.float32)
    x = np.arctanh((y - [0, 5]) / [1, 5])
    z = (x - [0.5, -0.5]) / [1, 2]
    log_normal = np.sum(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log([1, 2]))
    log_slope = np.sum(np.log([1, 5]) + np.log(1 - np.tanh(x) ** 2))
    np.testing.assert_allclose(
        distribution.log_prob(y), [log_normal - log_slope], rtol=1e-4
    )


def test_squashed_mode_and_spread():
    distribution = utils.scale_distribution_to_spec(normal(), SPEC)
    expected = np.array([0, 5]) + np.array([1, 5]) * np.tanh([0.5, -0.5])
    np.testing.assert_allclose(distribution.mode(), [expected], rtol=1e-5)
    np.testing.assert_allclose(distribution.mean(), [expected], rtol=1e-5)
    np.testing.assert_allclose(
        distribution.stddev(), [np.array([1, 5]) * np.tanh([1.0, 2.0])], rtol=1e-5
    )
    assert (distribution.batch_shape, distribution.event_shape) == ((1,), (2,))


def test_squashed_samples_follow_their_density():
    distribution = utils.scale_distribution_to_spec(normal(), SPEC)
    samples = distribution.sample(4000, seed=1).numpy()[:, 0]
    draws = normal().sample(4000, seed=2).numpy()[:, 0]
    expected = np.array([0, 5]) + np.array([1, 5]) * np.tanh(draws)
    np.testing.assert_allclose(samples.mean(0), expected.mean(0), atol=0.2)


def test_squashed_divergence_is_that_of_the_normals():
    first, second = normal(), normal(loc=(0.0, 0.0))
    squashed = [utils.scale_distribution_to_spec(d, SPEC) for d in (first, second)]
    np.testing.assert_allclose(
        squashed[0].kl_divergence(squashed[1]), first.kl_divergence(second), rtol=1e-6
    )
    other_spec = tensor_spec.BoundedTensorSpec([2], tf.float32, 0.0, 1.0)
    other = utils.SquashToSpecNormal(second, other_spec)
    with pytest.raises(ValueError, match="does not have same action mean"):
        squashed[0].kl_divergence(other)
    with pytest.raises(ValueError, match="of type SquashToSpecNormal"):
        squashed[0].kl_divergence(second)


def test_only_normals_are_squashed():
    with pytest.raises(ValueError, match="must be a normal distribution"):
        utils.scale_distribution_to_spec(tfp.distributions.Uniform(), SPEC)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_inverse_tanh_is_finite_at_the_ends(dtype):
    bijector = tanh_bijector_stable.Tanh()
    y = tf.constant([-1.0, 0.0, 1.0], dtype)
    assert np.all(np.isfinite(bijector.inverse(y)))
    assert np.isnan(bijector.inverse(tf.constant(1.5, dtype)))


def test_parameters_round_trip():
    shift = tfp.bijectors.Shift(tf.constant([1.0, 2.0]))
    distribution = tfp.distributions.TransformedDistribution(normal(), shift)
    params = utils.get_parameters(distribution)
    assert params.params["bijector"].type_ is tfp.bijectors.Shift
    rebuilt = utils.make_from_parameters(params)
    np.testing.assert_allclose(
        rebuilt.log_prob([[0.0, 0.0]]), distribution.log_prob([[0.0, 0.0]]), rtol=1e-6
    )


def test_parameters_as_dictionaries():
    distribution = tfp.distributions.TransformedDistribution(
        normal(), tfp.bijectors.Shift([1.0, 2.0])
    )
    params = utils.get_parameters(distribution)
    everything = utils.parameters_to_dict(params)
    assert everything["bijector"]["shift:1"] == 2.0
    tensors = utils.parameters_to_dict(params, tensors_only=True)
    assert set(tensors["distribution"]) == {"loc", "scale_diag"}
    assert tensors["bijector"] == {}


def test_parameters_of_other_objects_are_an_error():
    with pytest.raises(TypeError, match=r"value.parameters is not available"):
        utils.get_parameters(3)


def test_spec_of_a_distribution():
    spec = utils.spec_from_distribution(normal(), num_outer_dims=1)
    assert spec.event_spec == tf.TensorSpec([2], tf.float32)
    assert spec.parameters.params["loc"] == tf.TensorSpec([2], tf.float32)
    assert spec == utils.spec_from_distribution(normal(), num_outer_dims=1)


def test_spec_with_tensors_is_refused():
    params = utils.get_parameters(normal())
    with pytest.raises(TypeError, match="Saw a `Tensor` value"):
        utils.DistributionSpecV2(tf.TensorShape([2]), tf.float32, params)


def test_specs_are_compared():
    output = {"a": utils.spec_from_distribution(normal(), num_outer_dims=1)}
    utils.assert_specs_are_compatible(output, {"a": SPEC}, "actor")
    wrong = [{"b": SPEC}, {"a": tf.TensorSpec([3])}, {"a": tf.TensorSpec([2], "int32")}]
    for spec in wrong:
        with pytest.raises(ValueError, match="actor: the network emits"):
            utils.assert_specs_are_compatible(output, spec, "actor")


def test_reparameterized_sampling():
    with tf.GradientTape() as tape:
        loc = tf.Variable(0.0)
        distribution = tfp.distributions.Normal(loc, 1.0)
        sample = reparameterized_sampling.sample(distribution, reparam=True, seed=1)
    assert tape.gradient(sample, loc) == 1.0
    categorical = tfp.distributions.Categorical([0.0, 0.0])
    assert reparameterized_sampling.sample(categorical, seed=1).shape == ()
    with pytest.raises(ValueError, match="cannot be reparameterized"):
        reparameterized_sampling.sample(categorical, reparam=True)


def test_merging_a_dictionary_replaces_nested_parameters():
    distribution = tfp.bijectors.Shift(1.0)(normal())
    params = utils.get_parameters(distribution)
    values = utils.parameters_to_dict(params, tensors_only=True)
    values["distribution"]["loc"] = tf.constant([[5.0, 6.0]])
    merged = utils.make_from_parameters(
        utils.merge_to_parameters_from_dict(params, values)
    )
    np.testing.assert_array_equal(merged.distribution.loc, [[5.0, 6.0]])
    np.testing.assert_array_equal(merged.bijector.shift, distribution.bijector.shift)


def test_what_a_merged_dictionary_lacks_stays():
    params = utils.get_parameters(normal())
    for nothing in ({}, None):
        assert utils.merge_to_parameters_from_dict(params, nothing) == params


def test_merging_the_leaves_of_a_nested_argument():
    params = utils.Params(dict, {"a": {"x": 1, "y": 2}, "b": [3, 4]})
    merged = utils.merge_to_parameters_from_dict(params, {"b:0": 30, "b:1": 40})
    assert merged.params == {"a": {"x": 1, "y": 2}, "b": [30, 40]}
    with pytest.raises(KeyError, match="Only saw partial information"):
        utils.merge_to_parameters_from_dict(params, {"a:x": 10})
    with pytest.raises(ValueError, match=r"not part of value\.params"):
        utils.merge_to_parameters_from_dict(params, {"c": 1})


def test_merging_into_distributions_inside_a_nested_argument():
    parts = [tfp.distributions.Normal(0.0, 1.0), tfp.distributions.Normal(1.0, 1.0)]
    joint = tfp.distributions.JointDistributionSequential(parts)
    params = utils.get_parameters(joint)
    values = {"model:0": {}, "model:1": {"loc": tf.constant(7.0)}}
    merged = utils.make_from_parameters(
        utils.merge_to_parameters_from_dict(params, values)
    )
    assert [float(d.loc) for d in merged.model] == [0.0, 7.0]


def test_a_missing_nested_parameter_is_an_error():
    tanh = tfp.bijectors.Tanh
    params = utils.get_parameters(tanh()(tanh()(tfp.distributions.Normal(1.0, 3.0))))
    values = utils.parameters_to_dict(params)
    del values["distribution"]["scale"]
    assert utils.merge_to_parameters_from_dict(params, values) == params
    del values["bijector"]["bijectors:1"]
    with pytest.raises(
        KeyError,
        match=r"partial information from the dictionary for nested key 'bijectors' in "
        r"params_dict.*Entries provided: \['bijectors:0'\].*Entries required: "
        r"\['bijectors:0', 'bijectors:1'\]",
    ):
        utils.merge_to_parameters_from_dict(params, values)


def test_the_event_of_a_batch_of_normals_is_a_number():
    normals = tfp.distributions.Normal(tf.zeros([5, 3]), tf.ones([5, 3]))
    spec = utils.spec_from_distribution(normals, num_outer_dims=1)
    assert spec.event_shape == []
    assert spec.sample_spec == tf.TensorSpec([3], tf.float32)
    assert spec == utils.DistributionSpecV2(
        tf.TensorShape([]),
        tf.float32,
        utils.Params(
            tfp.distributions.Normal,
            {"loc": tf.TensorSpec([3]), "scale": tf.TensorSpec([3])},
        ),
    )
    utils.assert_specs_are_compatible(spec, tf.TensorSpec([3]), "actor")
    with pytest.raises(ValueError, match="actor: the network emits"):
        utils.assert_specs_are_compatible(spec, tf.TensorSpec([]), "actor")


def nested_distributions():
    loc = tf.constant([[0.5, -0.5], [1.0, 2.0], [0.0, 3.0]])
    base = tfp.distributions.MultivariateNormalDiag(loc, tf.ones([3, 2]))
    chain = tfp.bijectors.Chain(
        [tfp.bijectors.Shift(tf.constant(1.0)), tfp.bijectors.Scale([2.0, 3.0])]
    )
    independent = tfp.distributions.Independent(tfp.distributions.Normal(loc, 2.0), 1)
    return [
        independent,
        chain(base),
        tfp.distributions.Blockwise([base, independent]),
        tfp.distributions.MixtureSameFamily(
            tfp.distributions.Categorical(logits=tf.zeros([3, 4])),
            tfp.distributions.MultivariateNormalDiag(
                tf.random.stateless_normal([3, 4, 2], [1, 2]), tf.ones([3, 4, 2])
            ),
        ),
        utils.scale_distribution_to_spec(base, SPEC),
    ]


@pytest.mark.parametrize("index", range(5))
def test_nested_distributions_are_made_again_from_their_tensors(index):
    distribution = nested_distributions()[index]
    params = utils.get_parameters(distribution)
    tensors = utils.parameters_to_dict(params, tensors_only=True)
    again = utils.make_from_parameters(
        utils.merge_to_parameters_from_dict(params, tensors)
    )
    x = distribution.sample(seed=1)
    assert type(again) is type(distribution)
    np.testing.assert_allclose(again.log_prob(x), distribution.log_prob(x), rtol=1e-5)
    spec = utils.spec_from_distribution(distribution, num_outer_dims=1)
    assert spec.event_spec == tf.TensorSpec(x.shape[1:], x.dtype)
    assert spec == utils.spec_from_distribution(again, num_outer_dims=1)
