import numpy as np
import pytest
import tensorflow as tf

from tfrl.distributions import discrete_valued, sampling

VALUES = [-1.0, 0.0, 4.0]
PROBS = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
Distribution = discrete_valued.DiscreteValuedDistribution


@pytest.fixture(params=["logits", "probs"])
def distribution(request):
    if request.param == "probs":
        return Distribution(VALUES, probs=PROBS.astype(np.float32))
    with np.errstate(divide="ignore"):
        return Distribution(VALUES, logits=np.log(PROBS).astype(np.float32))


def test_moments_are_those_of_the_values(distribution):
    np.testing.assert_allclose(distribution.mean(), [0.5, 4], rtol=1e-6)
    # Squared deviations from 0.5: 2.25, 0.25 and 12.25.
    np.testing.assert_allclose(distribution.variance(), [4.25, 0], rtol=1e-6)
    np.testing.assert_allclose(distribution.stddev(), [4.25**0.5, 0], rtol=1e-6)
    np.testing.assert_array_equal(distribution.mode(), [-1, 4])


def test_probabilities_are_those_of_the_values(distribution):
    np.testing.assert_allclose(distribution.prob([0.0, 4.0]), [0.25, 1], rtol=1e-6)
    np.testing.assert_array_equal(distribution.prob([0.5, 0.0]), [0, 0])
    np.testing.assert_allclose(distribution.cdf(0.5), [0.75, 0], rtol=1e-6)


def test_samples_are_values():
    many = Distribution(VALUES, probs=tf.tile([[0.5, 0.25, 0.25]], [4000, 1]))
    for samples in (
        many.sample(seed=1),
        sampling.sample(many, tf.constant([1, 2], tf.int64)),
    ):
        assert samples.dtype == tf.float32
        shares = [np.mean(samples == value) for value in VALUES]
        np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.03)
    assert many.sample(3, seed=1).shape == [3, 4000]


def test_values_may_differ_in_the_event():
    distribution = Distribution([[0.0, 1.0], [5.0, 7.0]], probs=[[0.5, 0.5]] * 2)
    np.testing.assert_array_equal(distribution.mean(), [0.5, 6])
    assert set(np.ravel(distribution.sample(20, seed=0)[:, 1])) == {5, 7}


def test_entropy_and_divergence_are_those_of_the_probabilities(distribution):
    uniform = Distribution(VALUES, logits=tf.zeros([2, 3]))
    first = 0.5 * np.log(0.5) + 0.5 * np.log(0.25)
    np.testing.assert_allclose(distribution.entropy()[0], -first, rtol=1e-6)
    np.testing.assert_allclose(
        distribution.kl_divergence(uniform)[0], first + np.log(3), rtol=1e-5
    )


def test_it_passes_through_functions_and_loops():
    @tf.function
    def shifted(distribution):
        return tf.while_loop(
            lambda i, _: i < 3,
            lambda i, d: (
                i + 1,
                Distribution(d.values, tf.add(d.logits, [0.0, 0.0, 1.0])),
            ),
            (0, distribution),
        )[1]

    result = shifted(Distribution(VALUES, tf.zeros([1, 3])))
    weights = np.exp([0, 0, 3])
    np.testing.assert_allclose(
        result.mean(), [weights @ VALUES / weights.sum()], rtol=1e-5
    )
    assert type(result) is Distribution


@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 6)])
@pytest.mark.parametrize("event_shape", [(), (3,), (3, 4)])
def test_axes_of_values_are_axes_of_the_event(batch_shape, event_shape):
    shape = (*batch_shape, *event_shape)
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(5), shape)
    values = np.sort(rng.normal(size=(*event_shape, 5)), axis=-1)
    distribution = Distribution(values, probs=probs)
    assert distribution.batch_shape == batch_shape
    assert distribution.event_shape == event_shape
    assert tuple(distribution.batch_shape_tensor()) == batch_shape
    assert tuple(distribution.event_shape_tensor()) == event_shape
    # The numbers of an event are independent.
    event = tuple(range(len(batch_shape), len(shape)))
    log_probs = np.log(probs)
    mean = (probs * values).sum(-1)
    np.testing.assert_allclose(distribution.mean(), mean)
    np.testing.assert_allclose(
        distribution.variance(), (probs * (values - mean[..., None]) ** 2).sum(-1)
    )
    np.testing.assert_allclose(
        distribution.entropy(), -(probs * log_probs).sum(-1).sum(event)
    )
    np.testing.assert_allclose(
        distribution.log_prob(values[..., 1]), log_probs[..., 1].sum(event)
    )
    np.testing.assert_allclose(
        distribution.cdf(values[..., 1]), probs[..., :2].sum(-1).prod(event)
    )
    uniform = Distribution(values, logits=np.zeros((*shape, 5)))
    divergence = (probs * (log_probs + np.log(5))).sum(-1).sum(event)
    np.testing.assert_allclose(distribution.kl_divergence(uniform), divergence)
    samples = distribution.sample(7, seed=1)
    assert samples.shape == (7, *shape)
    assert np.all((samples.numpy()[..., None] == values).any(-1))
    drawn = sampling.sample(distribution, tf.constant([1, 2], tf.int64))
    assert drawn.shape == shape
    if batch_shape:
        part = distribution[1:]
        assert (part.batch_shape, part.event_shape) == (
            (batch_shape[0] - 1, *batch_shape[1:]),
            event_shape,
        )
        np.testing.assert_allclose(part.mean(), mean[1:])


def test_values_broadcast_to_the_events_of_the_logits():
    distribution = Distribution([[0.0, 1.0]], probs=[[0.5, 0.5], [0.25, 0.75]])
    assert (distribution.batch_shape, distribution.event_shape) == ([], [2])
    np.testing.assert_array_equal(distribution.mean(), [0.5, 0.75])


@pytest.mark.parametrize("values", [[0.0, 1.0], [[0.0, 1.0, 2.0]] * 3])
def test_values_that_do_not_fit_are_an_error(values):
    with pytest.raises(ValueError, match="give one value for each logit"):
        Distribution(values, tf.zeros([2, 3]))
