"""Loggers, which write values to the terminal, files, TensorBoard, W&B or memory.

A logger has `write(values)` and `close()`. Filters and dispatchers are loggers too, so
they compose: `Dispatcher([CSVLogger(path), TimeFilter(TerminalLogger(), 5)])`.

>>> from tfrl.loggers import Dispatcher, InMemoryLogger, KeyFilter
>>> memory, only_loss = InMemoryLogger(), InMemoryLogger()
>>> logger = Dispatcher([memory, KeyFilter(only_loss, keep=["loss"])])
>>> logger.write({"loss": 0.5, "step": 1})
>>> memory.data, only_loss.data
([{'loss': 0.5, 'step': 1}], [{'loss': 0.5}])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
