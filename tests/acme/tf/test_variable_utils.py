"""Weights of a learner, brought to an actor."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme import core
from tfrl.acme.tf import variable_utils


class Source(core.VariableSource):
    """Returns the number of the request; waits until it may."""

    def __init__(self):
        self.requests = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.answered = threading.Event()

    def get_variables(self, names):
        assert self.may_answer.wait(10)
        self.requests.append(names)
        number = len(self.requests)
        threading.Timer(0.05, self.answered.set).start()
        return [[np.full(2, number)], [np.full((), -number)]]


def make_client(source, period=1):
    weights = tf.Variable([0.0, 0.0])
    layer = keras.Variable(0.0)
    variables = {"policy": [weights], "critic": [layer]}
    return variable_utils.VariableClient(source, variables, period), weights, layer


def test_a_waiting_update_copies_at_once():
    source = Source()
    client, weights, layer = make_client(source)
    client.update(wait=True)
    assert weights.numpy().tolist() == [1, 1]
    assert float(layer) == -1
    assert source.requests == [["policy", "critic"]]


def test_an_update_fetches_in_a_thread_and_a_later_one_copies():
    source = Source()
    source.may_answer.clear()
    client, weights, _ = make_client(source)
    for _ in range(3):
        client.update()
    assert not source.requests
    assert weights.numpy().tolist() == [0, 0]
    source.may_answer.set()
    assert source.answered.wait(10)
    client.update()
    assert weights.numpy().tolist() == [1, 1]


def test_each_period_has_one_request():
    source = Source()
    client, weights, _ = make_client(source, period=3)
    for _ in range(7):
        client.update(wait=True)
    assert len(source.requests) == 2
    assert weights.numpy().tolist() == [2, 2]


def test_an_error_of_the_source_is_raised():
    class Fails(core.VariableSource):
        def get_variables(self, names):
            raise RuntimeError("no such network")

    client, _, _ = make_client(Fails())
    with pytest.raises(RuntimeError, match="no such network"):
        client.update(wait=True)


def test_other_numbers_of_variables_and_periods_are_refused():
    with pytest.raises(ValueError, match="update_period: got 0, expected 1 or more"):
        make_client(Source(), period=0)
    client = variable_utils.VariableClient(Source(), {"policy": [tf.Variable(0.0)]})
    with pytest.raises(ValueError, match="returned 2 arrays for policy, expected 1"):
        client.update_and_wait()
