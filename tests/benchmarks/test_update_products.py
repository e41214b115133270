import collections

import pytest
import tensorflow as tf

from benchmarks.workers import update_products


@pytest.mark.parametrize(
    ("algorithm", "layers", "gradients"),
    [
        # Of an iteration, forward: next actions, two targets, two critics, the actor,
        # two critics of its actions, the temperature's actions; backward to the inputs:
        # two critics, two of the actor's actions, the actor; gradients: two critics,
        # the actor.
        ("sac", 2 * (9 + 5), 2 * 3),
        # Only one of two iterations updates the actor, by one critic.
        ("td3", 2 * (5 + 2) + (2 + 2), 2 * 2 + 1),
    ],
)
def test_two_iterations_have_the_products_of_all_updates(algorithm, layers, gradients):
    with tf.Graph().as_default() as graph:
        products = update_products._Products(algorithm, units=5, batch=7)
        products.of_iterations(2, tf.zeros([7, 1]))
    counts = collections.Counter(
        tuple(tuple(tensor.shape) for tensor in operation.inputs)
        for operation in graph.get_operations()
        if operation.type == "MatMul"
    )
    assert counts[(1, 5), (5, 5)] == 2
    assert counts[(7, 5), (5, 5)] == layers
    assert counts[(7, 5), (7, 5)] == gradients
