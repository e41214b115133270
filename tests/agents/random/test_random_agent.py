"""Agents that act and learn nothing."""

import numpy as np
import tensorflow as tf

from tfrl.agents.random import fixed_policy_agent, random_agent
from tfrl.policies import fixed_policy, random_tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(tf.TensorSpec([2], tf.float32))
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 9)


def step(batch=32):
    return ts.restart(tf.zeros([batch, 2]), batch_size=batch)


def test_training_a_random_agent_only_counts():
    agent = random_agent.RandomAgent(TIME_STEP, ACTION, name="chance")
    agent.initialize()
    before = agent.loss(experience=None)
    train = tf.function(agent.train)
    for _ in range(3):
        info = train(experience=tf.zeros([4]), weights=tf.ones([4]))
    assert (agent.name, int(agent.train_step_counter)) == ("chance", 3)
    assert float(before.loss) == float(info.loss) == 0
    assert len(agent.variables()) == 1
    assert agent.policy is agent.collect_policy
    assert isinstance(agent.policy, random_tf_policy.RandomTFPolicy)
    assert agent.train_sequence_length is None


def test_a_given_counter_counts():
    counter = tf.Variable(5, dtype=tf.int64)
    agent = random_agent.RandomAgent(TIME_STEP, ACTION, train_step_counter=counter)
    agent.train(())
    assert int(counter) == 6


def test_a_seed_determines_the_actions_of_a_random_agent():
    def actions(seed):
        agent = random_agent.RandomAgent(TIME_STEP, ACTION, seed=seed)
        return agent.policy.action(step()).action

    np.testing.assert_array_equal(actions(1), actions(1))
    assert not np.array_equal(actions(1), actions(2))


def test_a_fixed_policy_agent_makes_its_policy_of_the_specs():
    def always_seven(time_step_spec, action_spec):
        return fixed_policy.FixedPolicy(7, time_step_spec, action_spec)

    agent = fixed_policy_agent.FixedPolicyAgent(TIME_STEP, ACTION, always_seven)
    np.testing.assert_array_equal(agent.collect_policy.action(step(2)).action, [7, 7])
    assert agent.collect_data_spec.policy_info.log_probability.shape == []
    agent.train(experience=())
    assert int(agent.train_step_counter) == 1
