"""Moves programs for TF-Agents, Reverb and Acme to tfrl, as `tfrl migrate` does.

`weights` reads the weights that they have trained.

>>> import tempfile, pathlib
>>> from tfrl import migrate
>>> file = pathlib.Path(tempfile.mkdtemp()) / "train.py"
>>> _ = file.write_text("from tf_agents.agents import DqnAgent")
>>> migrate.programs.migrate([file])[0].text
'from tfrl.agents import DqnAgent'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["programs", "weights"]
)
