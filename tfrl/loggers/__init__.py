"""Where numbers go: the terminal, CSV files, TensorBoard, memory, or several at once.

A logger has `write(values)` and `close()`. Filters and dispatchers are loggers too, so
they compose: `Dispatcher([CSVLogger(path), TimeFilter(TerminalLogger(), 5)])`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
