"""`GreedyPolicy`: the mode, without randomness and, for Q networks, without TFP."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import network
from tfrl.policies import greedy_policy, q_policy, tf_policy
from tfrl.savers import whole_checkpoints
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds

OBSERVATION = tf.TensorSpec([3], tf.float32)
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
CONTINUOUS = tensor_spec.BoundedTensorSpec([3], tf.float32, -1.0, 1.0)
Q_VALUES = [[1.0, 3.0, 2.0], [5.0, -1.0, 0.0]]


class Echo(network.Network):
    """Says that the value of each action is the observation's entry."""

    def call(self, observation):
        return observation, ()


class DistributionPolicy(tf_policy.TFPolicy):
    """A distribution around the observation, made by `make_distribution`."""

    def __init__(self, make_distribution, **kwargs):
        super().__init__(ts.time_step_spec(OBSERVATION), CONTINUOUS, **kwargs)
        self._make_distribution = make_distribution

    def _variables(self):
        return []

    def _distribution(self, time_step, policy_state):
        distribution = self._make_distribution(time_step.observation)
        return policy_step.PolicyStep(distribution, policy_state)


def make_q_policy(**kwargs):
    return q_policy.QPolicy(ts.time_step_spec(OBSERVATION), DISCRETE, Echo(), **kwargs)


def step(observation=Q_VALUES):
    return ts.restart(tf.constant(observation), batch_size=len(observation))


def normal(loc):
    import tensorflow_probability as tfp

    return tfp.distributions.MultivariateNormalDiag(loc, [1.0] * 3)


def test_takes_the_argmax_of_the_values():
    policy = greedy_policy.GreedyPolicy(make_q_policy())
    np.testing.assert_array_equal(policy.action(step()).action, [1, 0])


def test_takes_the_clipped_mode_of_any_distribution():
    policy = greedy_policy.GreedyPolicy(DistributionPolicy(normal, clip=False))
    action = policy.action(step([[0.5, 2.0, -3.0]])).action
    np.testing.assert_array_equal(action, [[0.5, 1.0, -1.0]])


def test_agrees_with_the_mode_of_the_wrapped_distribution():
    wrapped = make_q_policy()
    policy = greedy_policy.GreedyPolicy(wrapped)
    np.testing.assert_array_equal(
        policy.action(step()).action, wrapped.distribution(step()).action.mode()
    )


def test_distribution_is_deterministic_at_the_mode():
    policy = greedy_policy.GreedyPolicy(make_q_policy())
    distribution = policy.distribution(step()).action
    np.testing.assert_array_equal(distribution.sample(), [1, 0])
    np.testing.assert_array_equal(distribution.prob([1, 1]), [1.0, 0.0])


def test_a_distribution_without_mode_is_an_error():
    class NoMode:
        def mode(self):
            raise NotImplementedError

    policy = greedy_policy.GreedyPolicy(DistributionPolicy(lambda _: NoMode()))
    with pytest.raises(ValueError, match=r"NoMode does not implement mode"):
        policy.action(step())


def test_log_probability_of_the_only_action_is_zero():
    policy = greedy_policy.GreedyPolicy(make_q_policy(emit_log_probability=True))
    info = policy.action(step()).info
    np.testing.assert_array_equal(info.log_probability, [0.0, 0.0])


def test_wraps_another_greedy_policy():
    policy = greedy_policy.GreedyPolicy(greedy_policy.GreedyPolicy(make_q_policy()))
    np.testing.assert_array_equal(policy.action(step()).action, [1, 0])


def test_the_graph_holds_one_argmax_and_nothing_random_or_clipped():
    policy = greedy_policy.GreedyPolicy(make_q_policy())
    specs = tf.nest.map_structure(
        lambda s: tf.TensorSpec([1, *s.shape], s.dtype), policy.time_step_spec
    )
    graph = tf.function(policy.action).get_concrete_function(specs).graph
    types = {op.type for op in graph.get_operations()}
    assert types <= {"Placeholder", "Const", "ArgMax", "Identity"}


@pytest.mark.slow
def test_q_networks_and_their_greedy_policies_never_import_tfp():
    code = """
import sys
import tensorflow as tf
from tfrl.networks import QNetwork
from tfrl.policies import EpsilonGreedyPolicy, GreedyPolicy, QPolicy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

observation = tf.TensorSpec([4], tf.float32)
action = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1)
net = QNetwork(observation, action, fc_layer_params=(8,))
policy = QPolicy(ts.time_step_spec(observation), action, net)
for wrapper in (GreedyPolicy(policy), EpsilonGreedyPolicy(policy, 0.5)):
    time_step = ts.restart(tf.zeros([2, 4]), batch_size=2)
    tf.function(wrapper.action)(time_step)
assert "tensorflow_probability" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_certain_distributions_know_their_probabilities_for_integers_too():
    certain = greedy_policy.DeterministicWithLogProb(loc=tf.constant([1, 2]))
    log_probability = certain.log_prob(tf.constant([1, 1]))
    assert log_probability.dtype == tf.float32
    np.testing.assert_array_equal(log_probability, [0.0, -np.inf])
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = greedy_policy.Missing


def test_a_checkpoint_of_when_it_had_a_generator_is_restored(tmp_path):
    policies = [greedy_policy.GreedyPolicy(make_q_policy(seed=i)) for i in range(2)]
    policies[0]._generator = seeds.make_generator(0)
    whole_checkpoints.Checkpointer(tmp_path, policy=policies[0]).save(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole_checkpoints.Checkpointer(tmp_path, policy=policies[1])
    states = [p.wrapped_policy._generator.state for p in policies]
    np.testing.assert_array_equal(*states)
    assert not hasattr(policies[1], "_generator")
