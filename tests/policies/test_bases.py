"""The properties that wrapping policies take from a policy, and where each differs."""

import pytest
import tensorflow as tf

from tfrl.policies import (
    bases,
    boltzmann_policy,
    epsilon_greedy_policy,
    gaussian_policy,
    greedy_policy,
    ou_noise_policy,
    policy_info_updater_wrapper,
    temporal_action_smoothing,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts


class Counting(tf_policy.TFPolicy):
    """Acts with 2; its state counts, from 10. Every flag is away from its default."""

    def __init__(self, dtype=tf.float32):
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([], tf.float32)),
            tensor_spec.BoundedTensorSpec([], dtype, 1, 3),
            tf.TensorSpec([], tf.int32),
            {"side": tf.TensorSpec([], tf.float32)},
            clip=False,
            emit_log_probability=True,
            automatic_state_reset=False,
            observation_and_action_constraint_splitter=lambda o: (o, None),
            validate_args=False,
        )
        self.weight = tf.Variable(1.0)

    def _variables(self):
        return [self.weight]

    def _get_initial_state(self, batch_size):
        return tf.fill([] if batch_size is None else [batch_size], 10)


def updated(policy):
    return policy_info_updater_wrapper.PolicyInfoUpdaterWrapper(
        policy, {"new": tf.TensorSpec([], tf.int32)}, lambda step: {}
    )


def smoothed(policy):
    return temporal_action_smoothing.TemporalActionSmoothing(policy, 0.5)


WRAP = {
    "plain": bases.WrapperPolicy,
    "greedy": greedy_policy.GreedyPolicy,
    "boltzmann": boltzmann_policy.BoltzmannPolicy,
    "gaussian": gaussian_policy.GaussianPolicy,
    "ou_noise": ou_noise_policy.OUNoisePolicy,
    "updated": updated,
    "smoothed": smoothed,
}
# The state of `smoothed` holds its average, too; it has a test of its own.
SAME_STATE = [name for name in WRAP if name != "smoothed"]


@pytest.mark.parametrize("name", WRAP)
def test_a_wrapper_has_the_specs_and_variables_of_what_it_wraps(name):
    policy = Counting()
    wrapper = WRAP[name](policy)
    assert wrapper.wrapped_policy is policy
    assert wrapper.time_step_spec == policy.time_step_spec
    assert wrapper.action_spec == policy.action_spec
    assert [v is policy.weight for v in wrapper.variables()] == [True]
    assert not wrapper.validate_args
    split = policy.observation_and_action_constraint_splitter
    assert wrapper.observation_and_action_constraint_splitter is split


@pytest.mark.parametrize("name", SAME_STATE)
@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_wrapper_begins_in_the_state_of_what_it_wraps(name, batch_size):
    wrapper = WRAP[name](Counting())
    assert wrapper.policy_state_spec == tf.TensorSpec([], tf.int32)
    state = wrapper.get_initial_state(batch_size)
    assert state.numpy().tolist() == (10 if batch_size is None else [10, 10])


def test_a_smoothed_policy_begins_in_that_state_and_at_an_average_of_zero():
    state, average = smoothed(Counting()).get_initial_state(2)
    assert state.numpy().tolist() == [10, 10]
    assert average.numpy().tolist() == [0.0, 0.0]


def test_epsilon_greedy_wraps_what_its_greedy_policy_wraps():
    policy = Counting(tf.int32)
    wrapper = epsilon_greedy_policy.EpsilonGreedyPolicy(policy, 0.5)
    assert wrapper.wrapped_policy is wrapper._greedy_policy.wrapped_policy is policy
    assert [v is policy.weight for v in wrapper.variables()] == [True]


@pytest.mark.parametrize(
    ("name", "clip", "emits", "resets"),
    [
        ("plain", False, True, False),
        ("greedy", True, True, False),
        ("boltzmann", False, True, False),
        ("gaussian", True, False, False),
        ("ou_noise", True, False, False),
        ("updated", False, True, False),
        ("smoothed", True, False, True),
    ],
)
def test_each_wrapper_sets_the_flags_that_it_needs(name, clip, emits, resets):
    wrapper = WRAP[name](Counting())
    assert wrapper._clip == clip
    assert wrapper.emit_log_probability == emits
    assert wrapper._automatic_state_reset == resets


def test_the_bounds_hold_for_an_average_from_zero_under_a_greedy_policy():
    class Exact(Counting):
        """Says that its greedy action, 2, needs no clipping."""

        _greedy_action_needs_clip = False

        def _greedy_action(self, time_step, policy_state):
            return policy_step.PolicyStep(tf.constant([2.0]), policy_state, {})

    policy = temporal_action_smoothing.TemporalActionSmoothing(Exact(), 0.9)
    step = ts.restart(tf.zeros([1]), batch_size=1)
    # The average is 0.2, below the bound 1.
    action = greedy_policy.GreedyPolicy(policy).action(step).action
    assert action.numpy().tolist() == [1.0]


def test_arguments_replace_what_is_the_wrapped_policys():
    wrapper = bases.WrapperPolicy(Counting(), "other", clip=True, info_spec=())
    assert wrapper.name == "other"
    assert wrapper._clip
    assert wrapper.info_spec._fields == ("log_probability",)
