"""What all agents that learn from rollouts have in common: their networks' losses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.agents.on_policy.rollouts import collect
from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


class Dense(keras.layers.Dense):
    """A layer of ones that adds `l2` times their number, and `per_call` in a call."""

    def __init__(self, units, l2=0.0, per_call=0.0):
        super().__init__(
            units,
            use_bias=False,
            kernel_initializer="ones",
            kernel_regularizer=keras.regularizers.L2(l2) if l2 else None,
        )
        self._per_call = per_call

    def call(self, inputs):
        if self._per_call:
            self.add_loss(tf.constant(self._per_call))
        return super().call(inputs)


def choice(logits):
    return tfp.distributions.Categorical(logits=logits, dtype=tf.int32)


def make(kind, regularized, shared):
    """The penalties are 2 and 10 of each torso, 12 of the actor, 6 of the critic."""
    torso, actor, critic = (
        {"l2": l2, "per_call": per_call} if regularized else {}
        for l2, per_call in ((0.5, 10.0), (2.0, 0.0), (3.0, 0.0))
    )
    first = Dense(2, **torso)
    second = first if shared else Dense(2, **torso)
    settings = {"num_epochs": 1} if kind is agents.PPOClipAgent else {}
    return kind(
        ts.time_step_spec(OBSERVATION),
        CHOICE,
        keras.optimizers.SGD(0.0),
        networks.Sequential([first, Dense(3, **actor), choice], OBSERVATION),
        networks.Sequential([second, Dense(1, **critic)], OBSERVATION),
        **settings,
    )


@pytest.mark.parametrize(("shared", "penalty"), [(True, 30), (False, 42)])
@pytest.mark.parametrize(
    "kind", [agents.PPOClipAgent, agents.A2CAgent, agents.ImpalaAgent]
)
def test_the_losses_of_the_networks_layers_count_once(kind, shared, penalty):
    plain, regularized = (make(kind, flag, shared) for flag in (False, True))
    frames, _ = collect(plain, "fmmMbfm")
    for training in (False, True):
        difference = (
            regularized.loss(frames, training=training).loss
            - plain.loss(frames, training=training).loss
        )
        np.testing.assert_allclose(difference, penalty, rtol=1e-5)
    difference = regularized.train(frames).loss - plain.train(frames).loss
    np.testing.assert_allclose(difference, penalty, rtol=1e-5)


def test_the_losses_of_layers_have_gradients():
    agent = make(agents.A2CAgent, True, True)
    agent._parts[0].optimizer.optimizer.learning_rate = 0.1
    frames, _ = collect(agent, "fm")
    agent.train(frames, weights=tf.zeros([1]))
    slopes = [1.0] * 4 + [4.0] * 6 + [6.0] * 2
    # Gradients are clipped to the norm 0.5.
    moved = 0.1 * 0.5 * np.array(slopes) / np.linalg.norm(slopes)
    found = [np.ravel(v) for v in agent._parts[0].trained_variables()]
    np.testing.assert_allclose(np.concatenate(found), 1 - moved, rtol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_the_losses_of_a_q_networks_layers_count_once(training):
    plain, regularized = (
        agents.PqnAgent(
            ts.time_step_spec(OBSERVATION), CHOICE, layer, keras.optimizers.SGD(0.1)
        )
        for layer in (Dense(3), Dense(3, l2=0.5, per_call=10.0))
    )
    frames, _ = collect(plain, "fmmMbfm")
    data = plain.preprocess_sequence(frames)
    one, other = (a.loss(data, training=training) for a in (plain, regularized))
    np.testing.assert_allclose(other.loss - one.loss, 13.0, rtol=1e-5)
    np.testing.assert_allclose(other.extra.td_loss, one.extra.td_loss, rtol=1e-5)
