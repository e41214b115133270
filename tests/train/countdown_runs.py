"""Runs of a small DQN loop, which several files of tests share.

To build and trace such a loop takes a second or two, and these tests are about what
happens around it. So `make_run` takes a loop that an earlier test is done with,
restored to the checkpoint of its construction, and builds one only if there is none.
This folder's `conftest.py` calls `take_back` after each test.
"""

import csv
import itertools
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tfrl import testing
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import tf_py_environment
from tfrl.environments.wrappers import base
from tfrl.eval import evaluate
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.specs import array_spec
from tfrl.train import off_policy_loop, run, run_directory


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
        fc_layer_params=(4,),
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


class _Exchangeable(base.PyEnvironmentBaseWrapper):
    """An environment whose inner environment can be exchanged."""

    def exchange(self, env):
        self._env = env


class _Used:
    """A loop that tests use one after the other."""

    _folder = tempfile.TemporaryDirectory(prefix="tfrl-tests-loops-")
    _numbers = itertools.count()

    def __init__(self):
        self._environment = _Exchangeable(countdown())
        self.loop = make_loop(tf_py_environment.TFPyEnvironment(self._environment))
        self._as_built = tf.train.Checkpoint(**self.loop.checkpoint_items())
        path = pathlib.Path(self._folder.name) / str(next(self._numbers))
        self._path = self._as_built.write(str(path))

    def restore(self, environment):
        """Makes the loop as it was built, but with another inner environment."""
        self._environment.exchange(environment)
        self._as_built.read(self._path).assert_existing_objects_matched()


_in_use, _free = [], []


def take_back():
    """Says that no test uses the loops any longer that `make_run` has given."""
    # One that failed while it collected its first experience would go on with that.
    _free.extend(used for used in _in_use if used.loop.iteration > 0)
    _in_use.clear()


def take_loop(environment=None, anew=False):
    """A loop as it is after its construction, in a `countdown()` unless given.

    Args:
      environment: The environment; it must have the specs of a `countdown()`.
      anew: Whether the loop must never have been traced.
    """
    used = _free.pop() if _free and not anew else _Used()
    used.restore(environment or countdown())
    _in_use.append(used)
    return used.loop


def make_run(path, environment=None, config=None, anew=False, **kwargs):
    """A run of 20 iterations; `evaluate` returns the iteration unless given."""
    loop = take_loop(environment, anew)
    settings = {
        "num_iterations": 20,
        "evaluate": result,
        "eval_interval": 10,
        "log_interval": 5,
        "checkpoint_interval": 4,
        **kwargs,
    }
    directory = run_directory.RunDirectory(path, config or {"env": "Countdown"})
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
