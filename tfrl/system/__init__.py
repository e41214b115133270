"""Processes: starting, watching and ending them. Nothing here imports TensorFlow.

A child is a fresh interpreter that receives its work over a socket. Nothing is forked,
the user's script needs no `if __name__ == "__main__"`, and the child always ends with
its parent. Environment workers use this.

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
