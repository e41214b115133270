"""The numbers of an agent's log, against numbers worked by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.losses import squared_loss
from tfrl.networks import sequential
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
FIRST, MID, LAST = 0, 1, 2


def make_agent(**kwargs):
    """Q(s, 0) = 2 s and Q(s, 1) = -s; the target is the reward plus 0.5 max Q."""
    layer = keras.layers.Dense(
        2, use_bias=False, kernel_initializer=lambda shape, dtype: [[2.0, -1.0]]
    )
    settings = {
        "optimizer": keras.optimizers.Adam(0.25),
        "td_errors_loss_fn": lambda y, q: squared_loss(y - q),
        "gamma": 0.5,
        **kwargs,
    }
    agent = dqn_agent.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        q_network=sequential.Sequential([layer], input_spec=OBSERVATION),
        **settings,
    )
    agent.initialize()
    return agent


def experience(step_types=(MID, MID)):
    """Action 0 in state 1, or action 1 in state 3; reward 1, next state 2."""
    return trajectory.Trajectory(
        step_type=tf.constant([[t, MID] for t in step_types]),
        observation=tf.constant([[[1.0], [2.0]], [[3.0], [2.0]]]),
        action=tf.constant([[0, 0], [1, 0]]),
        policy_info=(),
        next_step_type=tf.constant([[MID, MID], [MID, MID]]),
        reward=tf.ones([2, 2]),
        discount=tf.ones([2, 2]),
    )


def floats(values):
    return {name: float(value) for name, value in values.items()}


def test_the_numbers_of_a_batch_are_those_worked_by_hand():
    # Q is 2 and -3, the target 1 + 0.5 * 4 = 3, so the errors are 1 and 6. The gradient
    # of the mean squared error is -2 / 2 * error * s: -1 for action 0, -18 for 1.
    agent = make_agent(epsilon_greedy=0.125)
    before = [v.numpy() for v in agent.variables()]
    assert floats(agent.diagnose(experience())) == pytest.approx(
        {
            "learning_rate": 0.25,
            "epsilon": 0.125,
            "q_value": -0.5,
            "td_error": 3.5,
            "gradient_norm": np.sqrt(1 + 18**2),
            "explained_variance": 0.0,  # Both targets are the same.
            "observation_size": np.sqrt((1 + 4 + 9 + 4) / 4),
            "reward_size": 1.0,
        },
        rel=1e-6,
    )
    for now, earlier in zip(agent.variables(), before, strict=True):
        np.testing.assert_array_equal(now.numpy(), earlier)


def test_boundaries_do_not_count_in_the_means():
    values = floats(make_agent().diagnose(experience((MID, LAST))))
    assert (values["q_value"], values["td_error"]) == (2.0, 1.0)
    values = floats(make_agent().diagnose(experience((LAST, LAST))))
    assert (values["q_value"], values["td_error"]) == (0.0, 0.0)


def test_without_a_batch_there_are_the_rate_and_the_exploration():
    decay = keras.optimizers.schedules.PolynomialDecay
    agent = make_agent(
        optimizer=keras.optimizers.Adam(decay(1.0, 4, 0.0)),
        epsilon_greedy=None,
        boltzmann_temperature=decay(2.0, 4, 1.0),
    )
    agent.train(experience())
    assert floats(agent.diagnose()) == {"learning_rate": 0.75, "temperature": 1.75}
    agent = make_agent(optimizer=tf.compat.v1.train.AdamOptimizer(0.1))
    assert floats(agent.diagnose()) == pytest.approx({"epsilon": 0.1}, rel=1e-6)


def test_nothing_is_written_to_a_summary_writer(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=0):
        make_agent().diagnose(experience())
        writer.flush()
    (path,) = tmp_path.iterdir()
    events = list(tf.compat.v1.train.summary_iterator(str(path)))
    assert [event.WhichOneof("what") for event in events] == ["file_version"]
