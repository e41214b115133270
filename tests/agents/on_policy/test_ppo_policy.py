"""What PPO's policies record, and in which states they keep it."""

import numpy as np
import tensorflow as tf

from tfrl import networks
from tfrl.agents.on_policy import distribution_params, ppo_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import variables as variables_lib

OBSERVATION = tf.TensorSpec([2], tf.float32)
FORCE = tensor_spec.BoundedTensorSpec([1], tf.float32, -0.01, 0.01)
STEP = ts.restart(tf.constant(np.eye(2, dtype=np.float32)), 2)


def make(value_network=None, action_spec=FORCE, **kwargs):
    return ppo_policy.PPOPolicy(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        networks.ActorDistributionNetwork(OBSERVATION, action_spec, seed=1),
        value_network or networks.ValueNetwork(OBSERVATION, seed=2),
        **kwargs,
    )


def test_values_are_recorded_unless_they_are_computed_in_training():
    policy = make(clip=False)
    step = policy.action(STEP, seed=1)
    value, state = policy.apply_value_network(STEP.observation, STEP.step_type)
    np.testing.assert_allclose(
        step.info["value_prediction"], value, rtol=1e-5, atol=1e-6
    )
    assert state == policy.get_initial_value_state(2) == ()
    without = make(compute_value_and_advantage_in_train=True)
    assert set(without.info_spec) == {"dist_params"}
    assert make(collect=False).info_spec == ()


def test_the_distribution_is_that_of_actions_before_clipping():
    free, clipped = make(clip=False).action(STEP, seed=1), make().action(STEP, seed=1)
    assert np.abs(free.action).min() > 0.01
    np.testing.assert_allclose(np.abs(clipped.action), 0.01, rtol=1e-6)
    for step in (free, clipped):
        spec = make().info_spec["dist_params"]
        tf.nest.assert_same_structure(step.info["dist_params"], spec)
        np.testing.assert_allclose(step.info["dist_params"]["scale_diag"], 0.35, 1e-5)


def test_recorded_parameters_make_the_distribution_again():
    action_spec = {
        "force": FORCE,
        "choice": tensor_spec.BoundedTensorSpec([2], tf.int64, 3, 5),
    }
    policy = make(action_spec=action_spec)
    step = policy.distribution(STEP)
    network = networks.ActorDistributionNetwork(OBSERVATION, action_spec)
    made = distribution_params.distribution_from_spec(
        network.create_variables(), step.info["dist_params"]
    )
    action = policy.action(STEP, seed=1).action
    for name in action_spec:
        np.testing.assert_allclose(
            made[name].log_prob(action[name]),
            step.action[name].log_prob(action[name]),
            rtol=1e-5,
        )
    kl = distribution_params.nested_kl_divergence(made, step.action, outer_dims=[0])
    np.testing.assert_allclose(kl, [0, 0], atol=1e-6)


def test_only_a_collecting_policy_keeps_the_state_of_the_critic():
    critic = networks.ValueRnnNetwork(OBSERVATION, lstm_size=(3,), seed=2)
    policy = make(critic, compute_value_and_advantage_in_train=True)
    assert set(policy.policy_state_spec) == {"value_network_state"}
    state = policy.action(STEP, seed=1).state
    later = ts.transition(STEP.observation, tf.zeros([2]))
    kept = policy.action(later, state, seed=1).state["value_network_state"]
    _, expected = policy.apply_value_network(
        later.observation, later.step_type, state["value_network_state"]
    )
    tf.nest.map_structure(np.testing.assert_allclose, kept, expected)
    assert make(critic, collect=False).policy_state_spec == ()


def test_the_critics_weights_belong_to_a_policy_that_uses_it_and_to_no_other():
    recurrent = networks.ValueRnnNetwork(OBSERVATION, lstm_size=(3,), seed=2)
    for critic, uses_it in (
        (recurrent, {"compute_value_and_advantage_in_train": True}),
        (networks.ValueNetwork(OBSERVATION, seed=2), {}),
    ):
        policy, without = make(critic, **uses_it), make(critic, collect=False)
        of_critic = {id(v) for v in variables_lib.as_tf_variables(critic.variables)}
        assert of_critic <= {id(v) for v in policy.variables()}
        assert not of_critic & {id(v) for v in without.variables()}
