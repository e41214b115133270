"""Runs: a training loop with evaluation, logs, checkpoints and outputs.

>>> import tempfile
>>> from tfrl.train.runs import run_directory
>>> directory = tempfile.TemporaryDirectory()
>>> _ = run_directory.RunDirectory(directory.name, {"seed": 0})
>>> run_directory.RunDirectory(directory.name, {"seed": 0}).config
{'seed': 0}
>>> try:
...     run_directory.RunDirectory(directory.name, {"seed": 1})
... except run_directory.RunDirectoryError as error:
...     print(str(error).splitlines()[1].strip())
seed: was 0, is 1
>>> directory.cleanup()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
