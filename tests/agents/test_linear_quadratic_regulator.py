"""Actor-critic agents find the solution of Riccati's equation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -5, 5)
SPECS = (OBSERVATION, ACTION)


class Quadratic(networks.Network):
    """The exact value of a linear policy in a linear-quadratic regulator."""

    def __init__(self, initial, name=None):
        super().__init__(SPECS, name=name)
        self._layer = keras.layers.Dense(
            1, kernel_initializer=keras.initializers.Constant(initial)
        )

    def call(self, inputs, step_type=None, network_state=(), training=False):
        del step_type, training
        o, a = inputs
        values = self._layer(tf.concat([o * o, o * a, a * a], axis=-1))
        return values[..., 0], network_state


@pytest.mark.parametrize(
    ("agent_class", "kwargs", "noise"),
    [
        (agents.DdpgAgent, {}, 0.0),
        (agents.Td3Agent, {"critic_network_2": 0.1, "actor_update_period": 2}, 0.2),
    ],
)
def test_the_gain_of_a_linear_quadratic_regulator_is_riccatis(
    agent_class, kwargs, noise
):
    # o' = 0.9 o + 0.5 a with reward -(o^2 + 0.1 a^2) and discount 0.9. Riccati:
    # p = 1 + 0.9 * 0.81 p - (0.9 * 0.45 p)^2 / (0.1 + 0.9 * 0.25 p).
    p = 1.0
    for _ in range(200):
        p = 1 + 0.729 * p - (0.405 * p) ** 2 / (0.1 + 0.225 * p)
    gain = -0.405 * p / (0.1 + 0.225 * p)
    if "critic_network_2" in kwargs:
        kwargs = {**kwargs, "critic_network_2": Quadratic(kwargs["critic_network_2"])}
    agent = agent_class(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False),
        Quadratic(0.0),
        keras.optimizers.Adam(0.01),
        keras.optimizers.Adam(0.03),
        target_update_tau=0.05,
        td_errors_loss_fn=tf.math.squared_difference,
        gamma=0.9,
        **kwargs,
    )
    agent.initialize()

    @tf.function(autograph=False)
    def train(first, number):
        def body(i):
            noise = tf.random.stateless_uniform([2, 64, 1], [0, i], -1.0, 1.0)
            o, a = noise[0], 2 * noise[1]
            steps = tf.ones([64], tf.int32)
            agent.train(
                trajectory.Transition(
                    ts.TimeStep(steps, tf.zeros([64]), tf.ones([64]), o),
                    policy_step.PolicyStep(a),
                    ts.TimeStep(
                        steps,
                        -tf.squeeze(o * o + 0.1 * a * a, 1),
                        tf.ones([64]),
                        0.9 * o + 0.5 * a,
                    ),
                )
            )
            return i + 1

        tf.while_loop(lambda i: i < first + number, body, [first])

    train(tf.constant(0), tf.constant(2000))
    found = float(agent._actor_network.variables[0][0, 0])
    np.testing.assert_allclose(found, gain, rtol=0.02)
    # The value of the best action is -p o^2, less what the noise on the actions of the
    # targets costs from the next step on.
    cost = (0.1 + 0.225 * p) * noise**2 * 0.9 / (1 - 0.9)
    value, _ = agent._critic_networks[0](([[1.0]], [[gain]]))
    np.testing.assert_allclose(value, [-p - cost], rtol=0.03)
