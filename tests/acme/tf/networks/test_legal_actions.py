import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import legal_actions

OLT = collections.namedtuple("OLT", ["observation", "legal_actions", "terminal"])
VALUES = tf.constant([[1.0, 5.0, 3.0], [2.0, 2.0, -1.0]])


def inputs(legal, terminal):
    return OLT(VALUES, tf.constant(legal), tf.constant(terminal))


@pytest.mark.parametrize("terminal", [[0.0, 1.0], [[0.0], [1.0]]])
def test_illegal_actions_are_masked_and_terminal_values_are_zero(terminal):
    network = legal_actions.MaskedSequential([tf.identity])
    values, state = network(inputs([[1, 0, 1], [1, 1, 0]], terminal))
    np.testing.assert_array_equal(values, [[1, -1e9, 3], [0, 0, 0]])
    assert state == ()


def test_a_copy_of_a_masked_network_has_weights_of_its_own():
    network = legal_actions.MaskedSequential([keras.layers.Dense(3)], seed=0)
    copied = network.copy()
    nest = inputs([[1, 0, 1], [1, 1, 0]], [0, 0])
    assert network(nest)[0][0, 1] == copied(nest)[0][0, 1] == -1e9
    assert len(copied.variables) == 2
    assert not {id(v) for v in copied.variables} & {id(v) for v in network.variables}


def test_probabilities_are_shared_among_legal_and_among_best_actions():
    probs = legal_actions.epsilon_greedy(
        VALUES, 0.3, tf.constant([[True, False, True], [True, True, True]])
    )
    np.testing.assert_allclose(probs, [[0.15, 0, 0.85], [0.45, 0.45, 0.1]], rtol=1e-6)


def test_best_value_zero_does_not_let_illegal_actions_in():
    layer = legal_actions.EpsilonGreedy(epsilon=0.0, threshold=-1e8)
    distribution = layer(tf.constant([[-1e9, 0.0, -2.0]]))
    np.testing.assert_array_equal(distribution.probs, [[0, 1, 0]])


def test_a_row_without_a_legal_action_is_an_error():
    is_legal = tf.constant([[True, True, True], [False, False, False]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no action of a row"):
        tf.function(legal_actions.epsilon_greedy)(VALUES, 0.1, is_legal)


def test_epsilon_may_change():
    epsilon = tf.Variable(1.0)
    layer = legal_actions.EpsilonGreedy(epsilon, threshold=-1e8)
    act = tf.function(lambda values: layer(values).probs_parameter())
    np.testing.assert_array_equal(act(tf.constant([[0.0, 1.0]])), [[0.5, 0.5]])
    epsilon.assign(0.0)
    np.testing.assert_array_equal(act(tf.constant([[0.0, 1.0]])), [[0, 1]])


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_illegal_actions_are_never_taken(epsilon):
    rng = np.random.default_rng(0)
    values = rng.normal(size=[500, 4]).astype(np.float32)
    mask = rng.random([500, 4]) < 0.5
    mask[np.arange(500), rng.integers(0, 4, 500)] = True
    layer = legal_actions.NetworkWithMaskedEpsilonGreedy(
        lambda observation: observation["values"], epsilon, seed=0
    )
    actions = layer({"values": values, "legal_actions_mask": mask.astype(np.int32)})
    rows, actions = np.arange(500), actions.numpy()
    assert mask[rows, actions].all()
    is_greedy = actions == np.where(mask, values, -np.inf).argmax(-1)
    # A random action is the greedy one in one of so many cases as are legal.
    expected = np.mean(1 - epsilon + epsilon / mask.sum(-1))
    np.testing.assert_allclose(is_greedy.mean(), expected, atol=0.05)
