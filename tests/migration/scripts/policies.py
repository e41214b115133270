"""Policies in Python and in TensorFlow: random, scripted, actors, Q, greedy."""

import numpy as np
import tensorflow as tf
from tf_agents.networks import network
from tf_agents.policies import (
    actor_policy,
    greedy_policy,
    py_policy,
    q_policy,
    random_py_policy,
    random_tf_policy,
    scripted_py_policy,
    tf_policy,
)
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts

# Python policies.
action_spec = array_spec.BoundedArraySpec((2,), np.int32, -10, 10)
random_policy = random_py_policy.RandomPyPolicy(
    time_step_spec=None, action_spec=action_spec
)
assert isinstance(random_policy, py_policy.PyPolicy)
time_step = ts.restart(np.zeros([1], np.float32))
step = random_policy.action(time_step)
assert action_spec.check_array(np.asarray(step.action, np.int32))
assert random_policy.get_initial_state(batch_size=1) == ()

script = [(1, np.array([5, 2], dtype=np.int32)), (2, np.array([1, 3], dtype=np.int32))]
scripted = scripted_py_policy.ScriptedPyPolicy(
    time_step_spec=None, action_spec=action_spec, action_script=script
)
policy_state = scripted.get_initial_state()
played = []
for _ in range(3):
    step = scripted.action(time_step, policy_state)
    policy_state = step.state
    played.append(step.action.tolist())
assert played == [[5, 2], [1, 3], [1, 3]]

# TensorFlow policies.
action_spec = tensor_spec.BoundedTensorSpec((2,), tf.float32, minimum=-1, maximum=3)
input_tensor_spec = tensor_spec.TensorSpec((2,), tf.float32)
time_step_spec = ts.time_step_spec(input_tensor_spec)
random_tf = random_tf_policy.RandomTFPolicy(
    action_spec=action_spec, time_step_spec=time_step_spec
)
assert isinstance(random_tf, tf_policy.TFPolicy)
observation = tf.ones(time_step_spec.observation.shape)
time_step = ts.restart(observation)
action = random_tf.action(time_step).action
assert action.shape == (2,)


class ActionNet(network.Network):
    def __init__(self, input_tensor_spec, output_tensor_spec):
        super().__init__(
            input_tensor_spec=input_tensor_spec, state_spec=(), name="ActionNet"
        )
        self._output_tensor_spec = output_tensor_spec
        self._sub_layers = [
            tf.keras.layers.Dense(
                action_spec.shape.num_elements(), activation=tf.nn.tanh
            )
        ]

    def call(self, observations, step_type, network_state):
        output = tf.cast(observations, dtype=tf.float32)
        for layer in self._sub_layers:
            output = layer(output)
        actions = tf.reshape(output, [-1, *self._output_tensor_spec.shape.as_list()])
        return actions, network_state


actor = actor_policy.ActorPolicy(
    time_step_spec=time_step_spec,
    action_spec=action_spec,
    actor_network=ActionNet(input_tensor_spec, action_spec),
)
batch_size = 2
observations = tf.ones([batch_size, *time_step_spec.observation.shape.as_list()])
time_step = ts.restart(observations, batch_size)
action_step = actor.action(time_step)
assert action_step.action.shape == (2, 2)
distribution_step = actor.distribution(time_step)
assert distribution_step.action.sample().shape == (2, 2)


class QNetwork(network.Network):
    def __init__(self, input_tensor_spec, action_spec, num_actions=2, name=None):
        super().__init__(input_tensor_spec=input_tensor_spec, state_spec=(), name=name)
        self._sub_layers = [tf.keras.layers.Dense(num_actions)]

    def call(self, inputs, step_type=None, network_state=()):
        inputs = tf.cast(inputs, tf.float32)
        for layer in self._sub_layers:
            inputs = layer(inputs)
        return inputs, network_state


q_action_spec = tensor_spec.BoundedTensorSpec((), tf.int32, minimum=0, maximum=1)
my_q_policy = q_policy.QPolicy(
    time_step_spec,
    q_action_spec,
    q_network=QNetwork(input_tensor_spec, action_spec=q_action_spec, name="QNet"),
)
distribution_step = my_q_policy.distribution(time_step)
assert distribution_step.action.logits.shape == (2, 2)
greedy = greedy_policy.GreedyPolicy(my_q_policy)
best = np.argmax(distribution_step.action.logits, axis=-1)
assert (greedy.action(time_step).action.numpy() == best).all()
assert len(greedy.variables()) == 2
