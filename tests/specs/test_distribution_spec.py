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
