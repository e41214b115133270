"""Runs of a small DQN loop, which several files of tests share."""

import csv
import functools
from unittest import mock

import keras
import numpy as np

from tests.train import used_loops
from tfrl import testing
from tfrl.agents.dqn import dqn_agent
from tfrl.eval import evaluate
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.specs import array_spec
from tfrl.train.loops import off_policy_loop
from tfrl.train.runs import run, run_directory, saved_policies


def countdown(**kwargs):
    """Three steps of reward 1, whatever is done."""
    return testing.CountingEnvironment(
        3,
        observation_spec=array_spec.BoundedArraySpec((1,), np.float32, 0, 3, "count"),
        reward=lambda count, action: 1.0,
        **kwargs,
    )


def make_loop(environment):
    """A loop that collects 8 steps first, then trains on four frames an iteration."""
    network = q_network.QNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=(),
        seed=0,
    )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(1e-2),
        seed=0,
    )
    agent.initialize()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=100, seed=0
    )
    return off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=8,
        sample_batch_size=4,
        seed=0,
    )


_pool = used_loops.Pool(make_loop)
# Runs of the same loop share what they trace of its agent.
_saved_policies = functools.cache(saved_policies.SavedPolicies)


def make_run(path, environment=None, config=None, own=False, **kwargs):
    """A run of 20 iterations; `evaluate` returns the iteration unless given.

    Its environment must have the specs of a `countdown()`. For `own` see
    `used_loops.Pool`. Without a `path` it writes nothing.
    """
    loop = _pool.take(environment or countdown(), own=own)
    settings = {
        "num_iterations": 20,
        "evaluate": result,
        "eval_interval": 10,
        "log_interval": 5,
        "checkpoint_interval": 4,
        **kwargs,
    }
    directory = None
    if path is not None:
        directory = run_directory.RunDirectory(path, config or {"env": "Countdown"})
    with mock.patch.object(saved_policies, "SavedPolicies", _saved_policies):
        return run.Run(loop, directory, **settings), loop


def result(mean):
    """An evaluation of two episodes with this return."""
    return evaluate.EvaluationResult(
        np.array([mean, mean], np.float32), np.array([3, 3])
    )


def rows(path):
    """The rows of a run's metrics."""
    with open(path / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def weights(loop):
    """Copies of the agent's variables."""
    return [v.numpy().copy() for v in loop.agent.variables()]
