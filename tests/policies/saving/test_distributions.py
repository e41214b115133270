"""The tensors of a distribution and its description make the same distribution."""

import json
import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import masked, shifted_categorical, squash_to_spec
from tfrl.policies.saving import distributions
from tfrl.specs import tensor_spec

LOGITS = tf.constant([[1.0, 2.0, 3.0]])
NORMAL = tfp.distributions.MultivariateNormalDiag(
    tf.constant([[0.5, 0.25]]), tf.constant([[1.0, 2.0]])
)
BOUNDED = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1, -2], [1, 2])
KINDS = {
    "categorical": tfp.distributions.Categorical(LOGITS, dtype=tf.int64),
    "masked": masked.MaskedCategorical(LOGITS, tf.constant([[True, False, True]])),
    "shifted": shifted_categorical.ShiftedCategorical(LOGITS, shift=np.array(2)),
    "squashed": squash_to_spec.SquashToSpecNormal(NORMAL, BOUNDED),
    "transformed": tfp.distributions.TransformedDistribution(
        NORMAL,
        tfp.bijectors.Chain(
            [tfp.bijectors.Shift(tf.constant([1.0, 2.0])), tfp.bijectors.Exp()]
        ),
    ),
}


def put_together(tensors, descriptions):
    written = json.loads(json.dumps(descriptions))
    return distributions.put_together(None, tensors, written)


@pytest.mark.parametrize("kind", KINDS)
def test_a_distribution_is_put_together_as_it_was(kind):
    distribution = KINDS[kind]
    made = put_together(*distributions.take_apart(distribution))
    assert type(made) is type(distribution)
    assert made.dtype == distribution.dtype
    drawn = distribution.sample(20, seed=1)
    np.testing.assert_array_equal(made.log_prob(drawn), distribution.log_prob(drawn))


def test_the_tensors_are_named_by_the_arguments():
    tensors, _ = distributions.take_apart({"jump": KINDS["categorical"]})
    np.testing.assert_array_equal(tensors["jump"]["logits"], LOGITS)


def test_an_argument_that_is_no_value_is_refused():
    odd = tfp.distributions.Normal(0.0, 1.0, name="odd")
    odd._parameters["loc"] = object()
    with pytest.raises(TypeError, match="the distribution has an argument <object"):
        distributions.take_apart(odd)


@pytest.mark.parametrize("name", ["os:system", "tensorflow:Nothing", "this:s"])
def test_only_classes_of_distributions_are_made(name):
    with pytest.raises(ValueError, match=f"got '{name}', expected the class of a dis"):
        put_together({}, [{"class": name, "arguments": {}}])
    assert "this" not in sys.modules  # A file imports no module but TFP's and ours.
