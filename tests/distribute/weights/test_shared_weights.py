"""What an actor assigns, and when."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.distribute.weights import shared_weights, weight_puller


class Puller:
    """Has what the test gives it."""

    made = None

    def __init__(self, client, table, specs, period):
        self.arguments = client, table, specs, period
        self.now, self.is_closed = None, False
        Puller.made = self

    def newest(self):
        return self.now

    def close(self):
        self.is_closed = True


@pytest.fixture
def agent():
    variables = (keras.Variable([1.0, 2.0]), tf.Variable(3, dtype=tf.int32))
    return types.SimpleNamespace(
        collect_policy=types.SimpleNamespace(variables=lambda: variables),
        train_step_counter=tf.Variable(5, dtype=tf.int64),
    )


def test_weights_are_those_that_have_arrived_with_their_version(agent, monkeypatch):
    monkeypatch.setattr(weight_puller, "Puller", Puller)
    pulled = shared_weights.PulledWeights(agent, "client", 0.5)
    puller = Puller.made
    float_spec, int_spec = ((2,), np.float32), ((), np.int32)
    client, table, leaves, period = puller.arguments
    assert (client, table, period) == ("client", "variables", 0.5)
    specs = [(leaf.shape, leaf.dtype) for leaf in leaves]
    assert specs == [float_spec, int_spec, ((), np.int64)]
    assert all(leaf.is_checked for leaf in leaves)
    pulled.update()  # There are none.
    assert pulled.version == 5
    arrays = [np.array([8.0, 9.0], np.float32), np.int32(4), np.int64(12)]
    puller.now = weight_puller.Pulled(1, arrays)
    assert pulled.version == 5
    pulled.update()
    assert pulled.version == 12
    first, second = agent.collect_policy.variables()
    np.testing.assert_array_equal(first.numpy(), [8.0, 9.0])
    assert (int(second), int(agent.train_step_counter)) == (4, 12)
    second.assign(0)
    pulled.update()  # They are the same.
    assert int(second) == 0
    pulled.close()
    assert puller.is_closed
