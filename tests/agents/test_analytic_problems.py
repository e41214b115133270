"""Agents find the known solutions of small problems.

SAC's bandit, whose temperature has a solution too, is in `sac/test_sac_agent.py`.
"""

from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import agents, networks
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -5, 5)
SPECS = (OBSERVATION, ACTION)
TIME_STEP = ts.time_step_spec(OBSERVATION)


class Quadratic(networks.Network):
    """The exact value of a linear policy in a linear-quadratic regulator.

    At first it is `initial` everywhere.
    """

    def __init__(self, initial=0.0, name=None):
        super().__init__(SPECS, name=name)
        self._layer = keras.layers.Dense(
            1,
            kernel_initializer="zeros",
            bias_initializer=keras.initializers.Constant(initial),
        )

    def call(self, inputs, step_type=None, network_state=(), training=False):
        del step_type, training
        o, a = inputs
        values = self._layer(tf.concat([o * o, o * a, a * a], axis=-1))
        return values[..., 0], network_state


class Problem(NamedTuple):
    """From o to `decay o + 0.5 a`, at a cost of `o_cost o^2 + a_cost (a - best)^2`.

    The observations are `start + spread u`, with u uniform in [-1, 1].
    """

    start: float
    spread: float
    decay: float
    o_cost: float
    a_cost: float
    best: float
    discount: float


REGULATOR = Problem(0.0, 1.0, 0.9, o_cost=1.0, a_cost=0.1, best=0.0, discount=1.0)
BANDIT = Problem(1.0, 0.0, 0.0, o_cost=0.0, a_cost=1.0, best=0.3, discount=0.0)


class Solver:
    """An agent, and one trace of its training for all problems."""

    def __init__(self, agent, noise):
        self.agent, self.noise = agent, noise
        self.agent.initialize()
        self._initial = [v.numpy() for v in agent.variables()]

    def solve(self, problem, num_updates):
        """Returns the policy's factor of the observation, and the critic's values."""
        for variable, value in zip(self.agent.variables(), self._initial, strict=True):
            variable.assign(value)
        self._train(Problem(*map(tf.constant, problem)), tf.constant(num_updates))
        gain = float(self.agent._actor_network.variables[0][0, 0])
        value, _ = self.agent._critic_networks[0](([[1.0]], [[gain]]))
        return gain, float(value[0])

    @tf.function(autograph=False)
    def _train(self, problem, num_updates):
        def update(i):
            noise = tf.random.stateless_uniform([2, 64, 1], [0, i], -1.0, 1.0)
            o, a = problem.start + problem.spread * noise[0], 2 * noise[1]
            cost = problem.o_cost * o * o + problem.a_cost * (a - problem.best) ** 2
            steps, ones = tf.ones([64], tf.int32), tf.ones([64])
            reached = problem.decay * o + 0.5 * a
            self.agent.train(
                trajectory.Transition(
                    ts.TimeStep(steps, 0 * ones, ones, o),
                    policy_step.PolicyStep(a),
                    ts.TimeStep(steps, -cost[:, 0], problem.discount * ones, reached),
                )
            )
            return i + 1

        tf.while_loop(lambda i: i < num_updates, update, [tf.constant(0)])


@pytest.fixture(scope="module", params=some_slow(["ddpg", "td3"], fast=["ddpg"]))
def solver(request):
    agent_class, kwargs, noise = {
        "ddpg": (agents.DdpgAgent, {}, 0.0),
        "td3": (
            agents.Td3Agent,
            {"critic_network_2": Quadratic(0.1), "actor_update_period": 2},
            0.2,
        ),
    }[request.param]
    agent = agent_class(
        TIME_STEP,
        ACTION,
        keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False),
        Quadratic(),
        keras.optimizers.Adam(0.01),
        keras.optimizers.Adam(0.03),
        target_update_tau=0.05,
        td_errors_loss_fn=tf.math.squared_difference,
        gamma=0.9,
        **kwargs,
    )
    return Solver(agent, noise)


def test_the_gain_of_a_linear_quadratic_regulator_is_riccatis(solver):
    # Reward -(o^2 + 0.1 a^2) and discount 0.9. Riccati:
    # p = 1 + 0.9 * 0.81 p - (0.9 * 0.45 p)^2 / (0.1 + 0.9 * 0.25 p).
    p = 1.0
    for _ in range(200):
        p = 1 + 0.729 * p - (0.405 * p) ** 2 / (0.1 + 0.225 * p)
    gain, value = solver.solve(REGULATOR, 2000)
    np.testing.assert_allclose(gain, -0.405 * p / (0.1 + 0.225 * p), rtol=0.02)
    # The value of the best action is -p o^2, less what the noise on the actions of the
    # targets costs from the next step on.
    cost = (0.1 + 0.225 * p) * solver.noise**2 * 0.9 / (1 - 0.9)
    np.testing.assert_allclose(value, -p - cost, rtol=0.03)


def test_the_best_action_of_a_bandit(solver):
    action, value = solver.solve(BANDIT, 500)
    np.testing.assert_allclose(action, BANDIT.best, atol=0.01)
    np.testing.assert_allclose(value, 0, atol=0.01)


# Each step has reward 1. After two of them a time limit cuts the task, which goes on
# for ever: its value is 1 / (1 - gamma) = 2. It would be 4 / 3 if the time limit were
# a termination, or if the boundary were a transition without reward.
GAMMA = 0.5
CHOICE = BoundedTensorSpec([], tf.int64, 0, 1)
ENDLESS = trajectory.Trajectory(
    step_type=tf.constant([[FIRST, MID], [MID, LAST], [LAST, FIRST]] * 2),
    observation=tf.ones([6, 2, 1]),
    action=tf.zeros([6, 2, 1]),
    policy_info=(),
    next_step_type=tf.constant([[MID, LAST], [LAST, FIRST], [FIRST, MID]] * 2),
    reward=tf.constant([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]] * 2),
    discount=tf.ones([6, 2]),
)


def sgd(number, rate=0.5):
    return [keras.optimizers.SGD(rate) for _ in range(number)]


def q_network():
    return networks.QNetwork(OBSERVATION, CHOICE, fc_layer_params=(), seed=1)


def squashed():
    return networks.ActorDistributionNetwork(
        *SPECS,
        fc_layer_params=(),
        continuous_projection_net=agents.sac.TanhNormalProjectionNetwork,
        seed=2,
    )


SHARED = {"gamma": GAMMA, "td_errors_loss_fn": tf.math.squared_difference}
# The entropy's part of the value is left out.
NO_ENTROPY = {"initial_log_alpha": -30.0, **SHARED}
PENALTY = {
    "cql_alpha": 0.0,
    "num_cql_samples": 1,
    "include_critic_entropy_term": True,
    "use_lagrange_cql_alpha": False,
}
MAKERS = {
    "dqn": lambda: agents.DqnAgent(TIME_STEP, CHOICE, q_network(), *sgd(1), **SHARED),
    "discrete_sac": lambda: agents.DiscreteSacAgent(
        TIME_STEP, CHOICE, q_network(),
        networks.ActorDistributionNetwork(OBSERVATION, CHOICE, (), seed=2),
        *sgd(2), None, **NO_ENTROPY,
    ),
    "ddpg": lambda: agents.DdpgAgent(
        TIME_STEP, ACTION, keras.layers.Dense(1), Quadratic(), *sgd(2), **SHARED
    ),
    "td3": lambda: agents.Td3Agent(
        TIME_STEP, ACTION, keras.layers.Dense(1), Quadratic(), *sgd(2),
        critic_network_2=Quadratic(0.1), **SHARED,
    ),
    "sac": lambda: agents.SacAgent(
        TIME_STEP, ACTION, Quadratic(), squashed(), *sgd(2), None,
        critic_network_2=Quadratic(0.1), **NO_ENTROPY,
    ),
    "cql": lambda: agents.CqlSacAgent(
        TIME_STEP, ACTION, Quadratic(), squashed(), *sgd(2), None,
        critic_network_2=Quadratic(0.1), **PENALTY, **NO_ENTROPY,
    ),
    "iql": lambda: agents.IqlAgent(
        TIME_STEP, ACTION, Quadratic(), networks.ValueNetwork(OBSERVATION, (), seed=3),
        squashed(), *sgd(1, 0.0), *sgd(2), critic_network_2=Quadratic(0.1),
        target_update_tau=1.0, **SHARED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some_slow(MAKERS, fast=["dqn", "td3"]))
def test_a_time_limit_does_not_end_the_values(name):
    agent = MAKERS[name]()
    agent.initialize()
    experience = ENDLESS
    if agent.action_spec == CHOICE:
        # Both actions are taken.
        choices = tf.repeat(tf.constant([0, 1], tf.int64), 3)[:, tf.newaxis]
        experience = ENDLESS._replace(action=tf.tile(choices, [1, 2]))
    train = tf.function(agent.train, autograph=False)
    for _ in range(40):
        train(experience)
    value = agent.diagnose(experience)["q_value"]
    np.testing.assert_allclose(value, 1 / (1 - GAMMA), rtol=0.01)
