"""Processes: starting, watching and ending them. Nothing here imports TensorFlow.

A child is a fresh interpreter, which `interpreter.start` starts for all of these.
Nothing is forked, the user's script needs no `if __name__ == "__main__"`, and Ctrl-C
reaches only the parent. What they promise:

- `child_process.ChildProcess`: a function that answers requests, over a socket; its
  exceptions are raised in the parent. Environment workers use this.
- `child_process.FunctionProcess`: a function that runs until it is asked to stop.
- `supervisor.supervise`: a group of processes, which are restarted if they are killed.
- `jobs.run_all`: modules with a command line, several at a time; all that they write
  goes to a file, and a signal reaches them as it would a program.
- `interpreter.run`: a few statements; their output and status are returned. This one
  runs on Windows, too.

On POSIX systems the children of the first four end with their parent, also if it is
killed: they watch a pipe that only the parent holds. `orphan_guard` does the same for
children of other libraries.

>>> from tfrl.environments import ProcessPyEnvironment, suite_gym
>>> from tfrl.system import ChildRaisedError
>>> environment = ProcessPyEnvironment(lambda: suite_gym.load("CartPole-v1"))
>>> environment.start()
>>> environment.reset().observation.shape
(4,)
>>> environment.close()
>>> broken = ProcessPyEnvironment(lambda: 1 / 0)
>>> try:
...     broken.start()
... except ChildRaisedError as error:
...     print("ZeroDivisionError" in str(error))
True
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# TF-Agents' name of this module.
_ALIASES = {"multiprocessing": "system_multiprocessing"}
__all__ += _ALIASES


def __getattr__(name: str) -> Any:
    return _load(_ALIASES.get(name, name))
