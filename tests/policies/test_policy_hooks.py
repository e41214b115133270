"""What a subclass of a policy may override, and what is refused.

The methods are those that TF-Agents' own subclasses override.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import actor_distribution_network, sequential
from tfrl.policies import (
    actor_policy,
    boltzmann_policy,
    epsilon_greedy_policy,
    greedy_policy,
    py_policy,
    q_policy,
    random_tf_policy,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
TIME_STEP = ts.time_step_spec(OBSERVATION)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)
STEP = ts.restart(tf.ones([5, 2]), batch_size=5)


class Strict(tf_policy.TFPolicy):
    """Takes its arguments by name alone, under TF-Agents' names."""

    def __init__(self):
        super().__init__(
            TIME_STEP, ACTION, policy_state_spec=tf.TensorSpec([], tf.int32)
        )
        self.weight = tf.Variable(1.0)

    def _action(self, *, time_step, policy_state, seed):
        zeros = tf.zeros_like(time_step.step_type)
        return policy_step.PolicyStep(zeros + 1, policy_state + 1)

    def _distribution(self, *, time_step, policy_state):
        import tensorflow_probability as tfp

        zeros = tf.zeros_like(time_step.step_type)
        return policy_step.PolicyStep(
            tfp.distributions.Deterministic(zeros + 2), policy_state
        )

    def _get_initial_state(self, batch_size):
        return tf.fill([batch_size], 40)

    def _variables(self):
        return [self.weight]


def test_hooks_are_called_by_keyword():
    policy = Strict()
    step = policy.action(STEP)
    np.testing.assert_array_equal(step.action, [1] * 5)
    np.testing.assert_array_equal(step.state, [41] * 5)
    np.testing.assert_array_equal(policy.distribution(STEP).action.loc, [2] * 5)
    assert policy.variables() == [policy.weight]


@pytest.mark.parametrize(
    "wrap",
    [
        greedy_policy.GreedyPolicy,
        lambda policy: epsilon_greedy_policy.EpsilonGreedyPolicy(policy, 0.0),
    ],
)
def test_wrappers_call_the_hooks_of_the_wrapped_policy(wrap):
    step = wrap(Strict()).action(STEP)
    # The mode of the distribution.
    np.testing.assert_array_equal(step.action, [2] * 5)
    np.testing.assert_array_equal(step.state, [40] * 5)


class Third:
    """A mixin that makes action 3 certain."""

    def _distribution(self, time_step, policy_state):
        import tensorflow_probability as tfp

        batch = tf.shape(time_step.step_type)
        logits = tf.one_hot(tf.fill(batch, 3), 4, 0.0, -100.0)
        return policy_step.PolicyStep(
            tfp.distributions.Categorical(logits=logits), policy_state
        )


def q_network():
    return sequential.Sequential([keras.layers.Dense(4)], input_spec=OBSERVATION)


def actor_network():
    return actor_distribution_network.ActorDistributionNetwork(OBSERVATION, ACTION)


def own(base):
    return type("Own", (Third, base), {})


@pytest.mark.parametrize(
    "make",
    [
        lambda: own(q_policy.QPolicy)(TIME_STEP, ACTION, q_network()),
        lambda: own(actor_policy.ActorPolicy)(TIME_STEP, ACTION, actor_network()),
        lambda: own(greedy_policy.GreedyPolicy)(
            q_policy.QPolicy(TIME_STEP, ACTION, q_network())
        ),
        lambda: own(boltzmann_policy.BoltzmannPolicy)(
            q_policy.QPolicy(TIME_STEP, ACTION, q_network())
        ),
    ],
    ids=["q", "actor", "greedy", "boltzmann"],
)
def test_a_distribution_of_ones_own_decides_all_actions(make):
    policy = make()
    for acting in (
        policy,
        greedy_policy.GreedyPolicy(policy),
        epsilon_greedy_policy.EpsilonGreedyPolicy(policy, 0.0),
    ):
        np.testing.assert_array_equal(acting.action(STEP).action, [3] * 5)


def test_a_greedy_action_beside_the_distribution_is_kept():
    class Quick(Third, q_policy.QPolicy):
        def _greedy_action(self, time_step, policy_state):
            zeros = tf.zeros_like(time_step.step_type)
            return policy_step.PolicyStep(zeros + 1, policy_state)

    policy = greedy_policy.GreedyPolicy(Quick(TIME_STEP, ACTION, q_network()))
    np.testing.assert_array_equal(policy.action(STEP).action, [1] * 5)


class OwnNetwork(actor_policy.ActorPolicy):
    """Applies its network as the policy of TF-Agents' PPO does."""

    def _apply_actor_network(self, observation, step_type, policy_state, mask=None):
        self.step_type = step_type
        return super()._apply_actor_network(observation, step_type, policy_state, mask)


def test_an_actor_policy_applies_its_network_by_the_hook():
    policy = OwnNetwork(TIME_STEP, ACTION, actor_network())
    for act in (policy.distribution, policy.action):
        policy.step_type = None
        act(STEP)
        np.testing.assert_array_equal(policy.step_type, STEP.step_type)


@pytest.mark.parametrize(
    "base",
    [tf_policy.TFPolicy, q_policy.QPolicy, random_tf_policy.RandomTFPolicy],
)
@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("action", "write _action"),
        ("distribution", "write _distribution"),
        ("get_initial_state", "write _get_initial_state"),
        ("variables", "write _variables"),
        ("_maybe_reset_state", "automatic_state_reset=False"),
        ("_setup_specs", "give the constructor other specs"),
    ],
)
def test_methods_that_wrappers_would_not_call_are_refused(base, name, instead):
    with pytest.raises(
        TypeError, match=rf"Mine\.{name}: got an override that TFPolicy .*{instead}"
    ):
        type("Mine", (base,), {name: lambda self, *args: None})


def test_python_policies_have_their_hooks_and_refuse_others():
    class Two(py_policy.PyPolicy):
        def _action(self, time_step, policy_state, seed=None):
            return policy_step.PolicyStep(np.array(2), policy_state)

        def _get_initial_state(self, batch_size):
            return np.array(7)

    policy = Two(TIME_STEP, ACTION)
    assert policy.action(ts.restart(np.ones(2, np.float32)), 3).action == 2
    assert policy.get_initial_state() == 7
    with pytest.raises(TypeError, match=r"Mine._setup_specs: .* PyPolicy .* specs"):
        type("Mine", (Two,), {"_setup_specs": lambda self: None})
