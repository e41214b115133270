"""Writes a server's tables and steps to disk while the server continues to serve.

>>> import tempfile
>>> import numpy as np
>>> from tfrl.replay_service.engine.checkpoints import checkpoint_files
>>> with tempfile.TemporaryDirectory() as folder:
...     with checkpoint_files.CheckpointWriter(folder) as writer:
...         writer.add_array("numbers", np.arange(3))
...         path = writer.finish({"made_of": "numbers"})
...     checkpoint = checkpoint_files.latest(folder)
...     checkpoint_files.read_array(checkpoint, "numbers").tolist()
[0, 1, 2]
"""
