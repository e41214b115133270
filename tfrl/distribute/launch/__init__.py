"""Launchers, which start a run's processes: here, on a Ray cluster or by commands.

>>> from tfrl import distribute
>>> launcher = distribute.CommandLauncher("builtins:dict")  # Makes the experiment.
>>> command = launcher.command(distribute.Task("actor", 1), "10.0.0.5:9000")
>>> command.split()[2:5]
['tfrl.distribute.worker', '--role=actor', '--index=1']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
