"""Measures TF-Agents' bandits, in its own Python environment, set up as its example."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.bandits.agents import (
    lin_ucb_agent,
    linear_thompson_sampling_agent,
    neural_epsilon_greedy_agent,
)
from tf_agents.bandits.environments import (
    environment_utilities,
    piecewise_stochastic_environment,
    stationary_stochastic_py_environment,
    wheel_py_environment,
)
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import tf_py_environment
from tf_agents.networks import q_network
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.utils import common

from benchmarks.workers import bandit_settings as s
from benchmarks.workers import serving

_KINDS = {
    "LinearUCB": lin_ucb_agent.LinearUCBAgent,
    "LinearThompsonSampling": (
        linear_thompson_sampling_agent.LinearThompsonSamplingAgent
    ),
    "NeuralEpsilonGreedy": neural_epsilon_greedy_agent.NeuralEpsilonGreedyAgent,
}


def rounds(agent: str, form: str) -> serving.Task:
    """Makes the task of playing rounds; `form` is a key of `benchmarks.bandits`."""
    environment = _linear_in_tensorflow() if form == "graph" else _linear()
    return s.rounds_task(_iterations(agent, "linear", form, environment, s.Regret()))


def regret(agent: str, problem: str, rounds: int, seed: int) -> serving.Task:
    """Plays rounds from a seed, for their regret."""
    np.random.seed(seed)
    tf.random.set_seed(seed)
    total = s.Regret(problem)
    environment = {"linear": _linear, "wheel": _wheel}[problem]()
    iterate = _iterations(agent, problem, "functions", environment, total)
    return s.regret_task(iterate, total, rounds)


def _iterations(
    name: str, problem: str, form: str, environment: Any, total: s.Regret
) -> Callable[[int], None]:
    """Returns a function that does so many iterations."""
    agent = _agent(name, problem, environment)
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.policy.trajectory_spec, s.BATCH, max_length=s.STEPS
    )
    driver = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch, total],
        num_steps=s.ROUNDS,
    )
    collect, train = driver.run, agent.train
    if form != "trainer":
        collect, train = common.function(collect), common.function(train)

    def iterate(count: int) -> None:
        for _ in range(count):
            collect()
            train(buffer.gather_all())
            buffer.clear()

    return iterate


def _agent(name: str, problem: str, environment: Any) -> Any:
    specs = environment.time_step_spec(), environment.action_spec()
    arguments: dict[str, Any] = {"alpha": s.ALPHA[problem]}
    if name == "NeuralEpsilonGreedy":
        network = q_network.QNetwork(
            environment.observation_spec(), specs[1], fc_layer_params=s.LAYERS
        )
        arguments = {
            "reward_network": network,
            "optimizer": tf.compat.v1.train.AdamOptimizer(s.LEARNING_RATE),
            "epsilon": s.EPSILON,
        }
    return _KINDS[name](*specs, **arguments)


def _linear() -> Any:
    contexts = functools.partial(
        environment_utilities.context_sampling_fn, s.BATCH, s.SIZE
    )
    arms = environment_utilities.linear_reward_fn_generator(list(s.THETA), s.DEVIATION)
    return tf_py_environment.TFPyEnvironment(
        stationary_stochastic_py_environment.StationaryStochasticPyEnvironment(
            contexts, arms, batch_size=s.BATCH
        )
    )


def _wheel() -> Any:
    return tf_py_environment.TFPyEnvironment(
        wheel_py_environment.WheelPyEnvironment(
            s.DELTA, s.MU_BASE, s.STD_BASE, s.MU_HIGH, s.STD_HIGH, s.BATCH
        )
    )


def _linear_in_tensorflow() -> Any:
    """Makes the same problem without noise; its first interval does not end."""
    tfd = tfp.distributions
    integers = tfd.FiniteDiscrete(
        np.arange(-10, 10, dtype=np.float32),
        logits=tf.zeros([s.BATCH, s.SIZE, 20]),
    )
    return piecewise_stochastic_environment.PiecewiseStochasticEnvironment(
        integers,
        tfd.Deterministic(np.int64(2**60)),
        tfd.Deterministic(s.THETA.T),
        tfd.Deterministic(np.zeros(s.ARMS, np.float32)),
    )


if __name__ == "__main__":
    serving.serve(
        {"rounds": rounds, "regret": regret},
        ["tf-agents", "tensorflow", "numpy"],
        {"oneDNN": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "as it is by default")},
    )
