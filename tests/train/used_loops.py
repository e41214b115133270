"""Loops that tests use one after the other.

To build and trace a loop takes a second or two, which most tests are not about. A pool
hands out a loop that an earlier test is done with, restored to the checkpoint of its
construction, and builds one only if there is none. This folder's `conftest.py` calls
`take_back` after each test.
"""

import itertools
import pathlib
import tempfile

import tensorflow as tf

from tfrl.environments import tf_py_environment
from tfrl.environments.wrappers import base

_pools = []


class _Exchangeable(base.PyEnvironmentBaseWrapper):
    """An environment whose inner environment can be exchanged."""

    def exchange(self, env):
        self._env = env


class _Used:
    """A loop, its environment, and the checkpoint of its construction."""

    _folder = tempfile.TemporaryDirectory(prefix="tfrl-tests-loops-")
    _numbers = itertools.count()

    def __init__(self, make_loop, environment, arguments):
        self._environment = _Exchangeable(environment)
        self.loop = make_loop(
            tf_py_environment.TFPyEnvironment(self._environment), **arguments
        )
        self._as_built = tf.train.Checkpoint(**self.loop.checkpoint_items())
        path = pathlib.Path(self._folder.name) / str(next(self._numbers))
        self._path = self._as_built.write(str(path))

    def restore(self, environment):
        """Makes the loop as it was built, but with another inner environment."""
        self._environment.exchange(environment)
        self._as_built.read(self._path).assert_existing_objects_matched()


class Pool:
    """The loops of one function."""

    def __init__(self, make_loop):
        """Starts empty.

        Args:
          make_loop: A function of a `TFPyEnvironment` and keyword arguments.
        """
        self._make_loop = make_loop
        self._free, self._in_use = {}, []
        _pools.append(self)

    def take(self, environment, *, own=False, **arguments):
        """Returns a loop as it is after its construction, in a Python environment.

        Args:
          environment: The environment; unless `own`, all must have the same specs.
          own: Whether no other test gets this loop, before or after.
          **arguments: Arguments of `make_loop` that have a `repr` each.
        """
        if own:
            environment = tf_py_environment.TFPyEnvironment(environment)
            return self._make_loop(environment, **arguments)
        # On a machine with a GPU some tests run on the CPU.
        key = f"{sorted(arguments.items())!r} on {tf.zeros([]).device}"
        free = self._free.setdefault(key, [])
        if free:
            used = free.pop()
            used.restore(environment)
        else:
            used = _Used(self._make_loop, environment, arguments)
        self._in_use.append((key, used))
        return used.loop

    def take_back(self):
        """Says that no test uses the loops any longer."""
        for key, used in self._in_use:
            loop = used.loop
            # One that failed while it collected its first experience would go on there.
            if loop.iteration > 0 or int(loop.environment_steps()) == 0:
                self._free[key].append(used)
        self._in_use.clear()


def take_back():
    """Says that no test uses any pool's loops any longer."""
    for pool in _pools:
        pool.take_back()
