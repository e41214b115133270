"""Weights that are lost are found, outside of compiled programs."""

import collections

import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl.train.loops import training_loop


class Agent:
    """Has variables, one of which is infinite from the start."""

    def __init__(self):
        self.weights = tf.Variable([1.0, 2.0])
        self.bound = tf.Variable(np.inf)

    def variables(self):
        return [self.weights, self.bound, tf.Variable(3)]


def test_only_weights_that_were_finite_are_watched():
    agent = Agent()
    lost = training_loop.LostWeights(agent)
    lost.check(5.0, 1)
    agent.weights.assign([np.nan, 0.0])
    assert not lost.are_finite()
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 of the agent's 3"):
        lost.check(5.0, 1)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0.0, "1 of the agent's 3 variables hold NaN or infinity now"),
        (np.nan, "2 of the agent's 3 variables hold NaN or infinity now, so the weigh"),
    ],
)
def test_the_error_counts_the_variables(weight, message):
    agent = Agent()
    lost = training_loop.LostWeights(agent)
    lost.check(1.0, 50)
    agent.weights.assign([weight, 1.0])
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=f"^experience: a Agent loss in the last 50 iterations.*{message}",
    ):
        lost.check(np.inf, 50)


def test_a_compiled_program_of_ppo_tests_no_weights_and_has_few_operations():
    ppo = tfrl.PPO("CartPole-v1", seed=0, jit_compile=True)
    loop = ppo.build()
    position = loop.begin()
    size = tf.constant(0, tf.int64)
    trace = loop._call.get_concrete_function(position, size, loop._zero_loss)
    graph = trace.graph.as_graph_def()
    inner = [node for f in graph.library.function for node in f.node_def]
    found = collections.Counter(node.op for node in [*graph.node, *inner])
    assert "IsFinite" not in found
    # XLA compiles each of them, and Python makes each in a millisecond or two.
    del found["Const"]
    assert 500 < found.total() < 1000
