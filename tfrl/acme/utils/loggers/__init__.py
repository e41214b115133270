"""Loggers, the same objects as in `tfrl.loggers`.

>>> from tfrl.acme.utils import loggers
>>> memory = loggers.InMemoryLogger()
>>> logger = loggers.Dispatcher([memory, loggers.NoOpLogger()])
>>> logger.write({"loss": 0.5, "step": 1})
>>> memory.data
[{'loss': 0.5, 'step': 1}]
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
