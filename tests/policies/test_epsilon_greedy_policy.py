"""`EpsilonGreedyPolicy`: how often, which actions, and what it says about them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import network
from tfrl.policies import (
    epsilon_greedy_policy,
    fixed_policy,
    q_policy,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

NUM_ACTIONS = 4
OBSERVATION = tf.TensorSpec([NUM_ACTIONS], tf.float32)
MASKED = {"q": OBSERVATION, "mask": tf.TensorSpec([NUM_ACTIONS], tf.int32)}
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, NUM_ACTIONS - 1)
BATCH = 8000


class Echo(network.Network):
    """Says that the value of each action is the observation's entry."""

    num_calls = 0

    def call(self, observation):
        self.num_calls += 1
        return observation, ()


class InfoPolicy(tf_policy.TFPolicy):
    """Emits as info the float 7 and, greedily, the action 2."""

    def __init__(self):
        info = {
            "value": tensor_spec.BoundedTensorSpec([], tf.float32, 0.0, 1.0),
            "kept": tensor_spec.BoundedTensorSpec([], tf.float32, 0.0, 1.0),
        }
        super().__init__(ts.time_step_spec(OBSERVATION), ACTION, info_spec=info)

    def _variables(self):
        return []

    def _greedy_action(self, time_step, policy_state):
        action = tf.fill(tf.shape(time_step.step_type), 2)
        seven = tf.fill(tf.shape(time_step.step_type), 7.0)
        return policy_step.PolicyStep(action, (), {"value": seven, "kept": seven})


def split(observation):
    return observation["q"], observation["mask"]


def make(epsilon, observation=OBSERVATION, splitter=None, action=ACTION, **kwargs):
    names = ("emit_log_probability", "validate_action_spec_and_network")
    of_q_policy = {name: kwargs.pop(name) for name in names if name in kwargs}
    wrapped = q_policy.QPolicy(
        ts.time_step_spec(observation),
        action,
        Echo(),
        observation_and_action_constraint_splitter=splitter,
        **of_q_policy,
    )
    return epsilon_greedy_policy.EpsilonGreedyPolicy(
        wrapped, epsilon, **{"seed": 0, **kwargs}
    )


def step(batch=BATCH):
    """A step at which action 1 is the best."""
    q_values = tf.tile([[0.0, 1.0, 0.5, 0.2]], [batch, 1])
    return ts.transition(q_values, tf.zeros([batch]))


def masked_step(mask, batch=BATCH):
    observation = {"q": step(batch).observation, "mask": tf.tile([mask], [batch, 1])}
    return ts.transition(observation, tf.zeros([batch]))


def frequencies(actions):
    return np.bincount(actions.numpy(), minlength=NUM_ACTIONS) / len(actions)


def test_epsilon_zero_is_greedy():
    assert set(make(0.0).action(step()).action.numpy()) == {1}


def test_epsilon_one_draws_all_actions_alike():
    # The standard deviation of each frequency is 0.005.
    np.testing.assert_allclose(
        frequencies(make(1.0).action(step()).action), [0.25] * 4, atol=0.02
    )


def test_explores_at_the_rate_of_epsilon_per_batch_entry():
    observed = frequencies(make(0.4).action(step()).action)
    np.testing.assert_allclose(observed, [0.1, 0.7, 0.1, 0.1], atol=0.02)


def test_every_action_of_many_can_be_drawn():
    spec = tensor_spec.BoundedTensorSpec([], tf.int64, -5, 14)
    policy = make(
        1.0,
        observation=tf.TensorSpec([20], tf.float32),
        action=spec,
        validate_action_spec_and_network=False,
    )
    time_step = ts.transition(tf.zeros([2000, 20]), tf.zeros([2000]))
    assert set(policy.action(time_step).action.numpy()) == set(range(-5, 15))


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.uint8])
def test_actions_have_the_dtype_of_the_spec(dtype):
    spec = tensor_spec.BoundedTensorSpec([], dtype, 0, NUM_ACTIONS - 1)
    assert make(0.5, action=spec).action(step(8)).action.dtype == dtype


def test_epsilon_may_be_a_tensor_a_variable_or_a_callable():
    variable = tf.Variable(0.0)
    for epsilon in (tf.constant(0.0), variable, lambda: 0.0, lambda: variable):
        assert set(make(epsilon).action(step()).action.numpy()) == {1}
    policy = make(variable)
    variable.assign(1.0)
    assert set(policy.action(step()).action.numpy()) == {0, 1, 2, 3}


def test_a_program_may_set_and_read_the_private_epsilon_of_tf_agents():
    policy = make(1.0)
    policy._epsilon = 0.25
    np.testing.assert_allclose(policy._get_epsilon(), 0.25)
    policy._epsilon = 0.0
    assert np.all(policy.action(step()).action == 1)


def test_a_callable_decays_inside_one_traced_function():
    counter = tf.Variable(0, dtype=tf.int64)
    decay = keras.optimizers.schedules.PolynomialDecay(1.0, 10, 0.0)
    policy = make(lambda: decay(counter))

    @tf.function
    def explore(num_iterations):
        fractions = tf.TensorArray(tf.float32, num_iterations)
        time_step = step()
        for i in tf.range(num_iterations):
            actions = policy.action(time_step).action
            explored = tf.reduce_mean(tf.cast(actions != 1, tf.float32))
            fractions = fractions.write(i, explored)
            counter.assign_add(1)
        return fractions.stack()

    observed = explore(tf.constant(12))
    # Three quarters of the random actions are not the greedy one.
    expected = 0.75 * np.clip(1.0 - 0.1 * np.arange(12), 0.0, 1.0)
    np.testing.assert_allclose(observed, expected, atol=0.03)
    assert explore.experimental_get_tracing_count() == 1


def test_a_keras_schedule_follows_the_step_given_with_it():
    counter = tf.Variable(0, dtype=tf.int64)
    decay = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    policy = make(decay, step=counter)
    action = tf.function(policy.action)
    for rate in (1.0, 0.5, 0.25):
        explored = np.mean(action(step()).action.numpy() != 1)
        np.testing.assert_allclose(explored, 0.75 * rate, atol=0.03)
        counter.assign_add(1)
    assert action.experimental_get_tracing_count() == 1


def test_a_keras_schedule_without_step_is_an_error():
    decay = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    with pytest.raises(ValueError, match=r"step: got None.*train_step_counter"):
        make(decay)


@pytest.mark.parametrize("epsilon", [-0.1, 1.5])
def test_a_number_that_is_no_probability_is_an_error(epsilon):
    with pytest.raises(ValueError, match=r"epsilon: expected .* in \[0, 1\], got"):
        make(epsilon)


def test_exploration_honours_the_mask():
    policy = make(1.0, observation=MASKED, splitter=split)
    observed = frequencies(policy.action(masked_step([1, 0, 0, 1])).action)
    np.testing.assert_allclose(observed, [0.5, 0.0, 0.0, 0.5], atol=0.03)


def test_greedy_actions_honour_the_mask():
    policy = make(0.0, observation=MASKED, splitter=split)
    assert set(policy.action(masked_step([1, 0, 0, 1])).action.numpy()) == {3}


def test_exploration_mask_limits_only_exploration():
    policy = make(0.5, exploration_mask=[0, 0, 1, 1])
    observed = frequencies(policy.action(step()).action)
    np.testing.assert_allclose(observed, [0.0, 0.5, 0.25, 0.25], atol=0.03)


def test_log_probability_adds_that_of_the_branch():
    result = make(0.4, emit_log_probability=True).action(step(100))
    observed = np.exp(result.info.log_probability)
    # Greedy with probability 0.6, or one of four random actions with 0.4 / 4.
    np.testing.assert_allclose(observed, np.where(observed > 0.3, 0.6, 0.1), rtol=1e-5)
    assert len(np.unique(observed.round(3))) == 2
    np.testing.assert_array_equal(result.action[observed > 0.3], 1)


def test_info_comes_from_the_branch_taken_or_always_from_the_greedy_one():
    policy = epsilon_greedy_policy.EpsilonGreedyPolicy(
        InfoPolicy(), 0.5, info_fields_to_inherit_from_greedy=("kept",), seed=0
    )
    result = policy.action(step(100))
    np.testing.assert_array_equal(result.info["kept"], 7.0)
    greedy = result.info["value"].numpy() == 7.0
    assert 20 < greedy.sum() < 80
    np.testing.assert_array_equal(result.action.numpy()[greedy], 2)


def test_more_than_one_outer_dimension_is_an_error():
    sequence = tf.nest.map_structure(lambda t: t[:, tf.newaxis], step(2))
    with pytest.raises(ValueError, match="at most one batch dimension"):
        make(0.5).action(sequence)


@pytest.mark.parametrize("first", [0, -3])
def test_the_distribution_has_the_probabilities_of_the_actions(first):
    # The numbers of rlax's test of its epsilon-greedy distribution.
    spec = tensor_spec.BoundedTensorSpec([], tf.int64, first, first + 3)
    policy = make(0.2, action=spec, validate_action_spec_and_network=False)
    time_step = ts.transition(tf.constant([[1.0, 2.0, 0.0, 0.0]]), tf.zeros([1]))
    distribution = policy.distribution(time_step).action
    np.testing.assert_allclose(
        distribution.probs_parameter(), [[0.05, 0.85, 0.05, 0.05]], rtol=1e-6
    )
    np.testing.assert_allclose(distribution.entropy(), [0.58750093], rtol=1e-5)
    np.testing.assert_allclose(
        distribution.log_prob([first + 1]), [-0.1625189], rtol=1e-5
    )
    assert distribution.mode().numpy() == [first + 1]
    assert distribution.dtype == tf.int64


@pytest.mark.parametrize("mask", [[1, 0, 1, 1], [0, 0, 1, 1], None])
def test_actions_are_drawn_with_the_probabilities_of_the_distribution(mask):
    masked = {"observation": MASKED, "splitter": split} if mask else {}
    policy = make(tf.Variable(0.4), exploration_mask=[1, 1, 0, 1], **masked)
    time_step = masked_step(mask) if mask else step()
    probabilities = policy.distribution(time_step).action.probs_parameter()
    np.testing.assert_allclose(tf.reduce_sum(probabilities, -1), 1, rtol=1e-6)
    observed = frequencies(policy.action(time_step).action)
    np.testing.assert_allclose(observed, probabilities[0], atol=0.02)


def test_several_choices_have_no_distribution():
    spec = tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 3)
    several = fixed_policy.FixedPolicy(
        np.zeros(2, np.int32), ts.time_step_spec(OBSERVATION), spec
    )
    policy = epsilon_greedy_policy.EpsilonGreedyPolicy(several, 0.5)
    with pytest.raises(
        NotImplementedError, match=r"Policy.distribution: got .*all explore"
    ):
        policy.distribution(step(2))


def test_the_same_seed_gives_the_same_actions():
    def run(seed):
        policy = make(0.5, seed=seed)
        return [policy.action(step(20)).action.numpy() for _ in range(3)]

    np.testing.assert_array_equal(run(3), run(3))
    assert not np.array_equal(run(3), run(4))


def test_a_seed_argument_decides_alone():
    one, other = make(0.5, seed=1), make(0.5, seed=2)
    np.testing.assert_array_equal(
        one.action(step(20), seed=9).action, other.action(step(20), seed=9).action
    )


def test_an_unknown_batch_size_is_fine():
    policy = make(1.0)
    specs = tf.nest.map_structure(
        lambda s: tf.TensorSpec([None, *s.shape], s.dtype), policy.time_step_spec
    )
    action = tf.function(policy.action, input_signature=[specs])
    assert action(step(3)).action.shape == [3]
    assert action(step(5)).action.shape == [5]


def test_the_graph_has_one_forward_pass_one_argmax_and_one_draw():
    policy = make(tf.Variable(0.5))
    specs = tf.nest.map_structure(
        lambda s: tf.TensorSpec([1, *s.shape], s.dtype), policy.time_step_spec
    )
    calls = policy.wrapped_policy._q_network.num_calls
    action = tf.function(lambda t, seed: policy.action(t, (), seed))
    seed = tf.TensorSpec([2], tf.int64)
    graph = action.get_concrete_function(specs, seed).graph
    types = [op.type for op in graph.get_operations()]
    assert policy.wrapped_policy._q_network.num_calls == calls + 1
    assert types.count("ArgMax") == 1
    assert types.count("StatelessRandomUniformV2") == 1
    assert not {"Assert", "Maximum", "Minimum", "ClipByValue", "While"} & set(types)


def test_a_single_step_gets_a_single_action():
    one = tf.nest.map_structure(lambda t: t[0], step(1))
    for policy in (make(0.0), make(1.0), make(0.5, emit_log_probability=True)):
        result = policy.action(one)
        assert result.action.shape == []
        for value in tf.nest.flatten(result.info):
            assert value.shape == []
