"""Policies over any spaces act alike when they are exported."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tests import properties
from tests.policies.exporting.test_formats import stirred
from tfrl import networks
from tfrl.networks import actor_distribution_network, q_network
from tfrl.policies import actor_policy, q_policy
from tfrl.policies.exporting import checking, formats, named_function
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

Bounded = tensor_spec.BoundedTensorSpec
SIZES = st.integers(1, 4)
SCALES = st.floats(0.125, 50, width=32)
LEAVES = st.one_of(
    st.builds(lambda n: tf.TensorSpec([n], tf.float32), SIZES),
    st.builds(lambda n, x: Bounded([n], tf.float64, -x, 2 * x), SIZES, SCALES),
    st.builds(lambda n, start: Bounded([], tf.int64, start, start + n), SIZES, SIZES),
    st.builds(lambda n: Bounded([2], tf.int32, 0, n), SIZES),
    st.builds(lambda n, m: Bounded([6, 5 + n, m], tf.uint8, 0, 255), SIZES, SIZES),
    st.just(Bounded([3], tf.bool, False, True)),
)
OBSERVATIONS = LEAVES | st.dictionaries(
    st.sampled_from(["a", "b", "x1"]), LEAVES, min_size=1, max_size=3
)
# One choice, or numbers with bounds of their own.
MOVES = Bounded([2], tf.float32, -3, 3)
CHOICES = SIZES.map(lambda n: Bounded([], tf.int64, 0, n))
BOXES = SIZES.flatmap(
    lambda n: st.lists(SCALES, min_size=n, max_size=n).map(
        lambda x: Bounded([n], tf.float32, -np.float32(x), 2 * np.float32(x))
    )
)


def policy_over(observation, action):
    arguments = networks.observation_encoder(observation)
    time_step = ts.time_step_spec(observation)
    if action.dtype.is_integer:
        network = q_network.QNetwork(
            observation, action, fc_layer_params=(5,), **arguments
        )
        return stirred(q_policy.QPolicy(time_step, action, network))
    network = actor_distribution_network.ActorDistributionNetwork(
        observation, action, fc_layer_params=(5,), **arguments
    )
    return stirred(actor_policy.ActorPolicy(time_step, action, network))


@pytest.mark.parametrize(
    ("format", "share"),
    [("numpy", 0.1), pytest.param("savedmodel", 0.05, marks=pytest.mark.slow)],
)
def test_an_exported_policy_acts_as_the_live_one(format, share, tmp_path_factory):
    @example(
        {"a": Bounded([], tf.int64, 1, 4), "b": Bounded([2], tf.int32, 0, 3)}, MOVES
    )
    @properties.fewer(share)
    @given(OBSERVATIONS, CHOICES | BOXES)
    def check(observation, action):
        policy = policy_over(observation, action)
        folder = tmp_path_factory.mktemp("exports")
        kind = formats.FORMATS[format]
        act = kind.load(formats.export(policy, folder / kind.file, format))
        inputs = checking.random_inputs(named_function.NamedFunction(policy), 20, 5)
        given_now = tf.nest.pack_sequence_as(
            observation, [tf.constant(x) for x in inputs.values()]
        )
        expected = policy.action(ts.transition(given_now, tf.zeros([20]))).action
        got = act(inputs)["action"]
        assert got.dtype == action.dtype.as_numpy_dtype
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
        assert np.all((action.minimum <= got) & (got <= action.maximum))

    check()
