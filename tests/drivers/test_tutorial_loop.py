"""Once warm, the tutorials' loop neither looks up nor makes traces."""

import keras
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.utils import common


@pytest.fixture(scope="module")
def parts():
    env = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))
    agent = dqn_agent.DqnAgent(
        env.time_step_spec(),
        env.action_spec(),
        q_network.QNetwork(
            env.observation_spec(), env.action_spec(), fc_layer_params=(8,), seed=1
        ),
        keras.optimizers.Adam(1e-3),
    )
    agent.train = common.function(agent.train)
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=100
    )
    return env, agent, buffer


def make_driver(parts):
    env, agent, buffer = parts
    return dynamic_step_driver.DynamicStepDriver(
        env, agent.collect_policy, [buffer.add_batch], num_steps=1
    )


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in a function"])
def test_turning_it_looks_nothing_up(parts, wrapped, monkeypatch):
    _, agent, buffer = parts
    driver = make_driver(parts)
    run = common.function(driver.run) if wrapped else driver.run
    time_step, policy_state = None, agent.collect_policy.get_initial_state(1)
    looked_up = []
    tf_function = type(tf.function(lambda: None))
    own = tf_function._call

    def counted(self, *args, **kwargs):
        looked_up.append(self)
        return own(self, *args, **kwargs)

    iterator = None
    for i in range(12):
        if i == 6:
            monkeypatch.setattr(tf_function, "_call", counted)
        time_step, policy_state = run(time_step, policy_state)
        if i >= 2:
            iterator = iterator or iter(
                buffer.as_dataset(sample_batch_size=4, num_steps=2).prefetch(3)
            )
            experience, _ = next(iterator)
            agent.train(experience)

    assert looked_up == []
    assert agent.train.experimental_get_tracing_count() == 1


def test_a_run_converts_its_limit_once(parts, monkeypatch):
    driver = make_driver(parts)
    time_step, policy_state = driver.run()

    def fail(*args, **kwargs):
        raise AssertionError("the limit was converted again")

    monkeypatch.setattr(tf, "cast", fail)
    for _ in range(3):
        time_step, policy_state = driver.run(time_step, policy_state)
    driver._num_steps = 2
    driver.run(time_step, policy_state)
    assert driver._traced_loop.experimental_get_tracing_count() == 1
