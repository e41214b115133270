"""Measurements of an agent for the log of its runs."""

import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl.train.loops import diagnostics


class Agent:
    """Counts the traces of what it measures."""

    def __init__(self):
        self.weights = tf.Variable([3.0, 4.0])
        self.train_step_counter = tf.Variable(0, dtype=tf.int64)
        self.diagnose = mock.Mock(side_effect=self.measured)

    def measured(self, batch):
        numbers = {"norm": tf.norm(self.weights), "undefined": tf.constant(np.nan)}
        return numbers if batch is None else {**numbers, "batch": tf.reduce_sum(batch)}

    def weights_by_name(self):
        return {"weights": [self.weights], "none": []}


def test_numbers_are_measured_again_without_another_trace():
    agent, seen = Agent(), types.SimpleNamespace(batch=False)
    made = diagnostics.Diagnostics(
        agent, can_draw=lambda: seen.batch, draw=lambda: tf.constant([1, 2])
    )
    made.begin()
    for _ in range(2):
        assert made.measure() == {"norm": 5, "weights_norm": 5}
    seen.batch = True
    agent.weights.assign([6.0, 8.0])
    agent.train_step_counter.assign(2)
    assert made.measure() == pytest.approx(
        {"norm": 10, "batch": 3, "weights_norm": 10, "weights_change": 5 / 10 / 2}
    )
    assert agent.diagnose.call_count == 2


def test_a_second_run_of_a_loop_traces_no_measurement():
    reinforce = tfrl.REINFORCE(
        "CartPole-v1", seed=0, num_iterations=2, jit_compile=False
    )
    reinforce.build()
    diagnose = reinforce.agent.diagnose
    with mock.patch.object(reinforce.agent, "diagnose", wraps=diagnose) as traced:
        reinforce.learn(1)
        count = traced.call_count
        reinforce.learn(1)
    assert traced.call_count == count > 0
