"""Trains with an environment whose step hangs, after a line on standard output.

With the argument "loop", a loop is called directly. With "run", a `Run` calls it, and
the environment is in another process, whose number is in that line. With "pool", the
environment is a pool of EnvPool, which waits in C. A second argument "compiled"
compiles the loop, and "overlap" lets the pool step while the updates run.
"""

import ctypes
import os
import signal
import sys
import tempfile
import time

import keras
import numpy as np

from tfrl import testing, train
from tfrl.agents import DqnAgent
from tfrl.environments import (
    parallel_py_environment,
    suite_envpool,
    tf_py_environment,
)
from tfrl.networks import QNetwork
from tfrl.replay_buffers import TFUniformReplayBuffer
from tfrl.specs import array_spec

MODE, HOW = sys.argv[1], sys.argv[2:]

# A process that was started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Hanging(testing.CountingEnvironment):
    """Step 300 of all episodes does not return."""

    def __init__(self):
        spec = array_spec.BoundedArraySpec((1,), np.float32, 0, 5, "count")
        super().__init__(5, observation_spec=spec)

    def _step(self, action):
        if self.num_steps == 300:
            print("hanging", os.getpid(), flush=True)
            while True:
                time.sleep(60)
        return super()._step(action)


def hanging_pool():
    """Returns a pool whose step number 300 waits in C, without Python's lock."""
    made = suite_envpool.load("CartPole-v1", 2)
    made.seed(0)
    made.reset()
    vector = made.gym
    pool, steps = vector._pool, iter(range(1_000_000))

    class Waiting:
        def __getattr__(self, name):
            return getattr(pool, name)

        def step(self, actions):
            if next(steps) == 300:
                print("hanging", os.getpid(), flush=True)
                # No signal ends this wait, as none ends EnvPool's.
                mutex = ctypes.create_string_buffer(64)
                for _ in range(2):
                    ctypes.CDLL(None).pthread_mutex_lock(mutex)
            return pool.step(actions)

    vector._pool = Waiting()
    return made


def main():
    if MODE == "run":
        made = parallel_py_environment.ParallelPyEnvironment([Hanging])
    elif MODE == "pool":
        made = hanging_pool()
    else:
        made = Hanging()
    environment = tf_py_environment.TFPyEnvironment(made)
    agent = DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=QNetwork(environment.observation_spec(), environment.action_spec()),
        optimizer=keras.optimizers.Adam(1e-3),
    )
    agent.initialize()
    loop = train.OffPolicyLoop(
        environment,
        agent,
        TFUniformReplayBuffer(agent.collect_data_spec, environment.batch_size, 1000),
        initial_collect_steps=10,
        seed=0,
        jit_compile="compiled" in HOW,
        overlap="overlap" in HOW,
    )
    if MODE != "run":
        loop.run(100_000_000)
    else:
        directory = train.RunDirectory(tempfile.mkdtemp(), {})
        train.Run(loop, directory, num_iterations=100_000_000).run()


main()
