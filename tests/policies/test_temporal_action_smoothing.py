"""`TemporalActionSmoothing`: a moving average in the policy state."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import (
    gaussian_policy,
    greedy_policy,
    temporal_action_smoothing,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(tf.TensorSpec([], tf.float32))
ACTION = {"a": tensor_spec.BoundedTensorSpec([1], tf.float32, -8.0, 8.0)}


class Echo(tf_policy.TFPolicy):
    """Acts with the observation; says it in `info`, and counts in its state."""

    def __init__(self, state_spec=()):
        super().__init__(
            TIME_STEP, ACTION, state_spec, info_spec={"x": TIME_STEP.observation}
        )

    def _variables(self):
        return []

    def _action(self, time_step, policy_state, seed):
        x = time_step.observation
        state = tf.nest.map_structure(lambda s: s + 1, policy_state)
        return policy_step.PolicyStep({"a": x[:, tf.newaxis]}, state, {"x": x})

    def _greedy_action(self, time_step, policy_state):
        return self._action(time_step, policy_state, None)


def smooth(coefficient=0.75, wrapped=None):
    return temporal_action_smoothing.TemporalActionSmoothing(
        wrapped or Echo(), coefficient
    )


def step(x, first=False):
    x = tf.constant(x)
    return ts.restart(x, x.shape[0]) if first else ts.transition(x, tf.zeros(x.shape))


def test_the_action_is_the_average_from_zero_on():
    policy = smooth()
    first = policy.action(step([8.0, 4.0], first=True))
    np.testing.assert_array_equal(first.action["a"], [[2.0], [1.0]])
    second = policy.action(step([0.0, 8.0]), first.state)
    np.testing.assert_array_equal(second.action["a"], [[1.5], [2.75]])
    np.testing.assert_array_equal(second.state[1]["a"], second.action["a"])


def test_a_new_episode_begins_at_zero_again():
    policy = smooth()
    state = policy.action(step([8.0, 4.0])).state
    mixed = step([4.0, 4.0])._replace(step_type=tf.constant([0, 1]))
    np.testing.assert_array_equal(
        policy.action(mixed, state).action["a"], [[1.0], [1.75]]
    )


def test_the_wrapped_policys_state_and_info_are_kept():
    policy = smooth(wrapped=Echo(tf.TensorSpec([], tf.int32)))
    state = policy.get_initial_state(2)
    action = tf.function(policy.action)
    for _ in range(3):
        result = action(step([8.0, 4.0]), state)
        state = result.state
    np.testing.assert_array_equal(state[0], [3, 3])
    # The average of the actions is no state of a network, the wrapped policy's is.
    assert policy.network_state(state) is state[0]
    assert policy.is_recurrent
    assert not smooth().is_recurrent
    np.testing.assert_array_equal(result.info["x"], [8.0, 4.0])
    assert action.experimental_get_tracing_count() == 1


def test_a_coefficient_of_zero_changes_nothing():
    np.testing.assert_array_equal(
        smooth(0.0).action(step([3.0], first=True)).action["a"], [[3.0]]
    )


def test_the_seed_reaches_the_wrapped_policy():
    def act(seed):
        noisy = gaussian_policy.GaussianPolicy(Echo())
        return smooth(wrapped=noisy).action(step([0.0]), seed=seed).action["a"].numpy()

    np.testing.assert_array_equal(act(1), act(1))
    assert act(1) != act(2)


def test_greedy_actions_are_smoothed_too():
    policy = greedy_policy.GreedyPolicy(smooth())
    np.testing.assert_array_equal(
        policy.action(step([8.0], first=True)).action["a"], [[2.0]]
    )


def test_a_coefficient_out_of_range_is_an_error():
    with pytest.raises(
        ValueError, match=r"smoothing_coefficient: expected .* got 1\.5"
    ):
        smooth(1.5)


def test_discrete_actions_are_refused():
    class Discrete(tf_policy.TFPolicy):
        pass

    spec = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
    with pytest.raises(ValueError, match=r"got dtype int32, expected continuous"):
        smooth(wrapped=Discrete(TIME_STEP, spec))
