import pytest
import tensorflow as tf

from tfrl.specs import distribution_spec


def make_spec(**kwargs):
    return distribution_spec.DistributionSpec(
        dict, {"loc": tf.TensorSpec([])}, sample_spec=tf.TensorSpec([]), **kwargs
    )


def test_distribution_is_built_from_its_parameters():
    spec = make_spec(scale=2.0)
    assert spec.build_distribution(loc=1.0) == {"loc": 1.0, "scale": 2.0}
    assert spec.sample_spec == tf.TensorSpec([])
    assert spec.distribution_parameters == {"scale": 2.0}


def test_parameters_have_to_have_the_structure_of_their_specs():
    with pytest.raises(ValueError, match="structure"):
        make_spec().build_distribution(loc=(1.0, 2.0))


def test_specs_of_parameters_without_names_are_not_checked():
    spec = distribution_spec.DistributionSpec(
        dict, tf.TensorSpec([2]), tf.TensorSpec([])
    )
    assert spec.build_distribution(logits=(1.0, 2.0)) == {"logits": (1.0, 2.0)}


def test_deterministic_distribution_of_a_spec():
    spec = distribution_spec.deterministic_distribution_from_spec(tf.TensorSpec([2]))
    assert spec.sample_spec == spec.input_params_spec["loc"] == tf.TensorSpec([2])
    distribution = spec.build_distribution(loc=tf.constant([1.0, 2.0]))
    assert distribution.sample().numpy().tolist() == [1.0, 2.0]


def test_nests_of_distributions():
    specs = {"a": make_spec(), "b": (make_spec(scale=3.0),)}
    parameters = {"a": {"loc": 1.0}, "b": ({"loc": 2.0},)}
    assert distribution_spec.nested_distributions_from_specs(specs, parameters) == {
        "a": {"loc": 1.0},
        "b": ({"loc": 2.0, "scale": 3.0},),
    }
    with pytest.raises(ValueError, match="structure"):
        distribution_spec.nested_distributions_from_specs(specs, {"a": {"loc": 1.0}})


def test_representation_names_the_parts():
    assert "sample_spec=TensorSpec" in repr(make_spec())
