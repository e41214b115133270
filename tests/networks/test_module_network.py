"""Modules of Sonnet as networks; `Linear` and `Core` below are made like Sonnet's."""

import copy

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents
from tfrl import networks as tfrl_networks
from tfrl.acme.tf import networks
from tfrl.networks import layer_utils, module_network
from tfrl.networks import network as network_lib
from tfrl.specs import bounded_tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

SPEC = tf.TensorSpec([3], tf.float32)
X = tf.constant([[0.5, -2.0, 3.0], [1.0, 0.0, -0.5]])
STEPS = tf.constant([[[1.0], [2.0], [4.0]], [[3.0], [5.0], [7.0]]])
FIRSTS = tf.constant([[1, 0, 1], [1, 1, 1]])


class Linear(tf.Module):
    """Makes its variables when it is first called."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.w = None

    def __call__(self, inputs):
        if self.w is None:
            self.w = tf.Variable(tf.random.normal([inputs.shape[-1], self.size]))
            self.count = tf.Variable(0, trainable=False)
        return inputs @ self.w


class Stack(tf.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def __call__(self, inputs, *others):
        for layer in self.layers:
            inputs, others = layer(inputs, *others), ()
        return inputs

    @property
    def variables(self):
        raise ValueError("as Sonnet's does if there are none")


class Core(tf.Module):
    """Adds up its inputs."""

    def initial_state(self, batch_size):
        return {"sum": tf.zeros([batch_size, 1])}

    def __call__(self, inputs, state):
        state = {"sum": state["sum"] + inputs}
        return (inputs, state["sum"]), state


def built(module, spec=SPEC):
    network = network_lib.as_network(module, spec)
    network.create_variables()
    return network


def test_a_module_is_a_network_with_the_modules_variables():
    module = Stack([Linear(4), tf.nn.relu, Linear(2)])
    network = network_lib.as_network(module, SPEC)
    assert network.create_variables() == tf.TensorSpec([2])
    parts = [module.layers[0], module.layers[2]]
    held = {id(variable) for part in parts for variable in (part.w, part.count)}
    assert {id(variable) for variable in network.variables} == held
    assert [v.shape.as_list() for v in network.trainable_variables] == [[3, 4], [4, 2]]
    output, state = tf.function(network)(X)
    np.testing.assert_allclose(output, module(X), rtol=1e-6)
    assert state == ()


def test_layers_of_keras_in_a_module_count():
    module = Stack([keras.layers.Dense(4), Linear(2)])
    network = built(module)
    assert len(network.trainable_variables) == 3
    assert layer_utils.layers_in_module(module) == [module.layers[0]]


def test_a_copy_has_other_weights_and_a_deep_copy_the_same():
    network = built(Linear(2))
    output = network(X)[0]
    other, same = network.copy(), copy.deepcopy(network)
    network.module.w.assign(network.module.w + 1)
    np.testing.assert_array_equal(same(X)[0], output)
    assert not np.allclose(other(X)[0], output)


def test_copies_of_a_module_with_variables_begin_with_its_weights():
    module = Linear(2)
    output = module(X)
    network = network_lib.as_network(module, SPEC)
    np.testing.assert_array_equal(network.copy()(X)[0], output)


def test_two_inputs_are_two_arguments():
    network = network_lib.as_network(Stack([networks.CriticMultiplexer()]))
    output, _ = network((X, X))
    np.testing.assert_array_equal(output, tf.concat([X, X], axis=1))


def test_outer_dimensions_of_sequences_are_folded():
    def flat(x):
        return tf.reshape(x, [x.shape[0], -1])

    network = network_lib.as_network(Stack([flat]), tf.TensorSpec([2, 2]))
    assert network(tf.zeros([5, 3, 2, 2]))[0].shape == [5, 3, 4]
    assert network(tf.zeros([5, 2, 2]))[0].shape == [5, 4]


def test_modules_stand_among_layers_of_keras():
    network = networks.Sequential([Linear(4), keras.layers.Dense(1), Core()], SPEC)
    assert len(network.state_spec) == 1
    network.create_variables()
    assert len(network.trainable_variables) == 3
    assert len(network.copy().layers) == 3


@pytest.mark.parametrize("spec", [tf.TensorSpec([1]), None])
def test_the_state_of_a_core_begins_anew_with_an_episode(spec):
    network = network_lib.as_network(Core(), spec)
    assert network.state_spec == {"sum": tf.TensorSpec([1])}
    (inputs, sums), state = network(STEPS, step_type=1 - FIRSTS)
    np.testing.assert_array_equal(inputs, STEPS)
    np.testing.assert_array_equal(sums[..., 0], [[1, 3, 4], [3, 5, 7]])
    np.testing.assert_array_equal(state["sum"], [[4], [7]])
    # Step by step, from a state.
    (_, after), following = network(
        STEPS[:, 0], step_type=tf.constant([1, 0]), network_state=state
    )
    np.testing.assert_array_equal(after, [[5], [3]])
    np.testing.assert_array_equal(following["sum"], after)
    (_, first), _ = network(STEPS[:, 0])
    np.testing.assert_array_equal(first, [[1], [3]])


def test_sequences_of_unknown_length_are_refused_by_a_core():
    network = network_lib.as_network(Core(), tf.TensorSpec([1]))
    call = tf.function(network, [tf.TensorSpec([2, None, 1])])
    with pytest.raises(ValueError, match=r"unknown length, .* num_steps"):
        call(STEPS)


def test_distributions_of_sequences_are_refused():
    network = built(Stack([networks.MultivariateNormalDiagHead(2)]))
    assert network(X)[0].mean().shape == [2, 2]
    with pytest.raises(TypeError, match=r"networks\.Sequential\(\[module, head\]\)"):
        network(tf.zeros([2, 5, 3]))


def test_an_agent_trains_a_module():
    action = bounded_tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
    module = Linear(2)
    agent = agents.DqnAgent(
        ts.time_step_spec(SPEC),
        action,
        module,
        keras.optimizers.Adam(0.1),
        gamma=0.9,
        target_update_period=10,
    )
    agent.initialize()
    mids = tf.ones([2, 2], tf.int32)
    frames = tf.tile(X[:, tf.newaxis], [1, 2, 1])
    experience = trajectory.Trajectory(
        step_type=mids,
        observation=frames,
        action=tf.zeros([2, 2], tf.int32),
        policy_info=(),
        next_step_type=mids,
        reward=tf.ones([2, 2]),
        discount=tf.zeros([2, 2]),
    )
    losses = [float(agent.train(experience).loss) for _ in range(20)]
    assert losses[-1] < losses[0] / 10
    target = agent._target_q_network
    assert target.module is not module


def test_what_is_no_network_is_told_what_is():
    with pytest.raises(
        TypeError, match=r"Network, another keras Layer or a Sonnet mod"
    ):
        network_lib.as_network(tf.nn.relu)
    assert not module_network.is_module(keras.layers.Dense(1))
    assert not module_network.is_module(tf.Module())


def test_modules_in_a_network_of_a_user_count():
    class Own(tfrl_networks.Network):
        def __init__(self):
            super().__init__(SPEC)
            self.linear = Linear(2)

        def call(self, observation):
            return self.linear(observation), ()

    network = Own()
    network.create_variables()
    assert len(network.variables) == 2
    assert len(network.trainable_variables) == 1
