"""`CategoricalQPolicy`: expected values of distributions, masks, temperature."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import network
from tfrl.policies import (
    boltzmann_policy,
    categorical_q_policy,
    epsilon_greedy_policy,
    greedy_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

LOGITS = tf.TensorSpec([3, 2], tf.float32)
MASKED = {"logits": LOGITS, "mask": tf.TensorSpec([3], tf.int32)}
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
# Over the atoms -10 and 10 the values are 6, -2 and 8.
PROBABILITIES = np.array([[0.2, 0.8], [0.6, 0.4], [0.1, 0.9]], np.float32)
VALUES = [6.0, -2.0, 8.0]


class Echo(network.Network):
    """Says that the logits are the observation."""

    num_atoms = 2

    def call(self, observation):
        return observation, ()


class EchoWithoutAtoms(network.Network):
    """The same, without saying how many atoms there are."""

    def call(self, observation):
        return observation, ()


def split(observation):
    return observation["logits"], observation["mask"]


def make(net=None, observation=LOGITS, low=-10.0, high=10.0, **kwargs):
    return categorical_q_policy.CategoricalQPolicy(
        ts.time_step_spec(observation), ACTION, net or Echo(), low, high, **kwargs
    )


def logits(batch):
    return tf.tile(tf.math.log(PROBABILITIES)[tf.newaxis], [batch, 1, 1])


def step(batch=1, mask=None):
    observation = logits(batch)
    if mask is not None:
        mask = tf.tile([list(mask)], [batch, 1])
        observation = {"logits": observation, "mask": mask}
    return ts.restart(observation, batch_size=batch)


@pytest.mark.parametrize("batch", [1, 7])
def test_the_logits_of_the_actions_are_their_expected_values(batch):
    distribution = make().distribution(step(batch)).action
    np.testing.assert_allclose(distribution.logits, [VALUES] * batch, rtol=1e-5)
    assert distribution.dtype == tf.int32


def test_the_greedy_action_has_the_greatest_expected_value():
    policy = greedy_policy.GreedyPolicy(make())
    action = tf.function(policy.action)
    for _ in range(3):
        np.testing.assert_array_equal(action(step(7)).action, [2] * 7)
    assert action.experimental_get_tracing_count() == 1


def test_masked_actions_are_never_taken():
    kwargs = {
        "observation": MASKED,
        "observation_and_action_constraint_splitter": split,
    }
    policy = make(**kwargs)
    time_step = step(500, mask=(1, 1, 0))
    least = policy.distribution(time_step).action.logits[0, 2].numpy()
    assert least == np.finfo(np.float32).min
    greedy = greedy_policy.GreedyPolicy(policy).action(time_step).action
    np.testing.assert_array_equal(greedy, [0] * 500)
    explored = epsilon_greedy_policy.EpsilonGreedyPolicy(policy, 1.0, seed=0)
    assert set(explored.action(time_step).action.numpy()) == {0, 1}
    # Divided by a temperature below 1 the least number must not become -inf.
    for soft in (
        make(temperature=0.01, **kwargs),
        boltzmann_policy.BoltzmannPolicy(policy, 0.01),
    ):
        step_ = soft.distribution(time_step)
        assert np.isfinite(step_.action.logits).all()
        assert np.isfinite(step_.action.entropy()).all()
        assert 2 not in soft.action(time_step, seed=1).action.numpy()


def test_actions_are_sampled_by_the_values_over_the_temperature():
    policy = make(temperature=4.0, seed=0)
    actions = policy.action(step(5000)).action.numpy()
    weights = np.exp(np.array(VALUES) / 4.0)
    np.testing.assert_allclose(
        np.bincount(actions, minlength=3) / 5000, weights / weights.sum(), atol=0.02
    )


def test_the_temperature_may_be_read_at_each_action():
    temperature = tf.Variable(1.0)
    policy = make(temperature=lambda: temperature)
    logits_of = tf.function(lambda: policy.distribution(step()).action.logits)
    first = logits_of().numpy()
    temperature.assign(2.0)
    np.testing.assert_allclose(logits_of(), first / 2.0, rtol=1e-6)


def test_the_temperature_may_be_a_schedule_of_a_step():
    counter = tf.Variable(0, dtype=tf.int64)
    rise = keras.optimizers.schedules.PolynomialDecay(1.0, 1, 2.0)
    policy = make(temperature=rise, step=counter)
    logits_of = tf.function(lambda: policy.distribution(step()).action.logits)
    first = logits_of().numpy()
    counter.assign(1)
    np.testing.assert_allclose(logits_of(), first / 2.0, rtol=1e-6)
    with pytest.raises(ValueError, match=r"step: got None with .* as temperature"):
        make(temperature=rise)


def test_a_network_without_atoms_is_refused():
    with pytest.raises(ValueError, match=r"EchoWithoutAtoms has no property num_atoms"):
        make(EchoWithoutAtoms())


def test_a_network_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        make(observation=tf.TensorSpec([4, 2], tf.float32))


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"low": 1.0, "high": 1.0}, r"min_q_value, max_q_value: got 1\.0 and 1\.0"),
        ({"temperature": 0.0}, r"temperature: .* got 0\.0"),
    ],
)
def test_numbers_out_of_range_are_errors(kwargs, text):
    with pytest.raises(ValueError, match=text):
        make(**kwargs)


def test_other_action_specs_are_refused():
    def make_for(action_spec):
        categorical_q_policy.CategoricalQPolicy(
            ts.time_step_spec(LOGITS), action_spec, Echo(), -1.0, 1.0
        )

    with pytest.raises(TypeError, match=r"action_spec: expected one BoundedTensorSpec"):
        make_for(tf.TensorSpec([], tf.int32))
    with pytest.raises(ValueError, match=r"minimum.*ActionOffsetWrapper"):
        make_for(tensor_spec.BoundedTensorSpec([], tf.int32, 1, 3))
